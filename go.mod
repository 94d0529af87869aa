module github.com/cudago/cudago

go 1.26.0

require (
	github.com/go-python/gopy v0.5.0
	github.com/ianlancetaylor/demangle v0.0.0-20260724033716-83e58baca724
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
