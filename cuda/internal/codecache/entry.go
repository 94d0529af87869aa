// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

package codecache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"encoding/hex"
	"errors"
)

// Key names an entry: a hash of all that the compiler was told.
type Key [sha256.Size]byte

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// NewKey hashes lists of texts. Each list and text counts with its length, so
// that no two inputs have the same bytes.
func NewKey(lists ...[]string) Key {
	h := sha256.New()
	var b []byte
	for _, list := range lists {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(len(list)))
		h.Write(b)
		for _, text := range list {
			b = binary.LittleEndian.AppendUint64(b[:0], uint64(len(text)))
			b = append(b, text...)
			h.Write(b)
		}
	}
	var k Key
	h.Sum(k[:0])
	return k
}

// Entry is what a compiler made. It is read-only once it is in a cache.
type Entry struct {
	Kind  string // the kind of Data, such as "cubin"
	Data  []byte
	PTX   string
	Log   string
	Names map[string]string // name expression to symbol
	Files Files             // what the source includes
}

// size is about what the entry needs in memory.
func (e *Entry) size() int64 {
	n := len(e.Data) + len(e.PTX) + len(e.Log) + 512
	for path := range e.Files.Found {
		n += len(path) + 128
	}
	for _, path := range e.Files.Missing {
		n += len(path)
	}
	for folder, other := range e.Files.Same {
		n += len(folder) + len(other)
	}
	return int64(n)
}

// magic begins each file. A change of Entry needs another one.
const magic = "cudago compiled 2\n"

var errDamaged = errors.New("it is damaged")

// stored is what a file holds after magic and checksum: with the key, so that an
// entry under another's name is not taken for that.
type stored struct {
	Key   Key
	Entry Entry
}

func encode(k Key, e *Entry) ([]byte, error) {
	var body bytes.Buffer
	if err := gob.NewEncoder(&body).Encode(stored{k, *e}); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body.Bytes())
	return bytes.Join([][]byte{[]byte(magic), sum[:], body.Bytes()}, nil), nil
}

func decode(k Key, data []byte) (*Entry, error) {
	rest, found := bytes.CutPrefix(data, []byte(magic))
	if !found || len(rest) < sha256.Size {
		return nil, errDamaged
	}
	body := rest[sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], rest[:sha256.Size]) {
		return nil, errDamaged
	}
	var s stored
	if err := gob.NewDecoder(bytes.NewReader(body)).Decode(&s); err != nil || s.Key != k {
		return nil, errDamaged
	}
	return &s.Entry, nil
}
