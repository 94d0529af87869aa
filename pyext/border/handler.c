/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

/* A memory fault is a panic, and so an exception, only if Go's handler is asked about it. A handler that was installed after
 * ours was loaded comes before Go's, and takes the fault for the end of the process: faulthandler.enable() after the import
 * is enough. So while Go code touches memory that others may take away (internal/memfault), a handler of this file comes first.
 * It passes faults of Go code to Go, and all others to the handler that it found. */

typedef struct {
    int signal;
    struct sigaction go;                /* as it was after the runtime's start */
    struct sigaction found[2];          /* one is in use while the other is written */
    _Atomic(struct sigaction *) theirs; /* what ours stands before; NULL: only Go's */
} place;

static place places[] = {{.signal = SIGSEGV}, {.signal = SIGBUS}};
#define PLACES (sizeof places / sizeof *places)

static uintptr_t text_begin, text_end; /* of Go's code */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards who stands first, except against the handler */
static _Atomic int64_t sections;

static int in_go(uintptr_t pc) { return pc >= text_begin && pc < text_end; }

static uintptr_t pc_of(void *context) {
    mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
#ifdef __x86_64__
    return (uintptr_t)machine->gregs[REG_RIP];
#else
    return (uintptr_t)machine->pc;
#endif
}

static int same(const struct sigaction *a, const struct sigaction *b) { return a->sa_sigaction == b->sa_sigaction; }

static void first(int signal, siginfo_t *info, void *context);

static int stands_first(const struct sigaction *now) { return now->sa_sigaction == first; }

static void stand_first(place *p) {
    struct sigaction ours = {.sa_sigaction = first, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    sigfillset(&ours.sa_mask);
    sigaction(p->signal, &ours, NULL);
}

/* Calls a handler as the kernel would: with the signals blocked that it wants to be. */
static void call(const struct sigaction *handler, int signal, siginfo_t *info, void *context) {
    sigset_t blocked;
    sigorset(&blocked, &((ucontext_t *)context)->uc_sigmask, &handler->sa_mask);
    if (!(handler->sa_flags & SA_NODEFER)) sigaddset(&blocked, signal);
    pthread_sigmask(SIG_SETMASK, &blocked, NULL);
    if (handler->sa_flags & SA_SIGINFO) handler->sa_sigaction(signal, info, context);
    else handler->sa_handler(signal);
}

/* The other handler has the place to itself while it runs, as it expects: it may put back what it once found there, which can
 * be ours, and send the signal again. Then Go's is asked. If it still has the place afterwards, it has dealt with the fault. */
static void pass_on(place *p, int signal, siginfo_t *info, void *context) {
    struct sigaction *theirs = atomic_exchange(&p->theirs, NULL), now;
    if (!theirs) {
        call(&p->go, signal, info, context);
        return;
    }
    sigaction(signal, theirs, NULL);
    if (!(theirs->sa_flags & SA_SIGINFO) && (theirs->sa_handler == SIG_DFL || theirs->sa_handler == SIG_IGN)) {
        if (theirs->sa_handler == SIG_DFL && info->si_code <= 0) raise(signal); /* a fault comes again by itself */
        return;
    }
    call(theirs, signal, info, context);
    sigaction(signal, NULL, &now);
    if (!same(&now, theirs) || !atomic_load(&sections)) return;
    atomic_store(&p->theirs, theirs);
    stand_first(p);
}

static void first(int signal, siginfo_t *info, void *context) {
    place *p = places;
    while (p->signal != signal) p++;
    if (info->si_code > 0 && in_go(pc_of(context))) call(&p->go, signal, info, context);
    else pass_on(p, signal, info, context);
}

/* From a goroutine, without the GIL; so is the next one. Each section looks, because others come between at any time. */
void cudago_faults_begin(void) {
    pthread_mutex_lock(&lock);
    int64_t before = atomic_fetch_add(&sections, 1);
    for (place *p = places; p < places + PLACES; p++) {
        struct sigaction now;
        sigaction(p->signal, NULL, &now);
        if (stands_first(&now)) {
            /* Put back by one who found it here in an earlier section: what it stood before then may be gone. */
            if (!before) atomic_store(&p->theirs, NULL);
        } else if (!in_go((uintptr_t)now.sa_sigaction)) {
            struct sigaction *theirs = atomic_load(&p->theirs) == p->found ? p->found + 1 : p->found;
            *theirs = now;
            atomic_store(&p->theirs, theirs);
            stand_first(p);
        }
    }
    pthread_mutex_unlock(&lock);
}

void cudago_faults_end(void) {
    pthread_mutex_lock(&lock);
    if (atomic_fetch_sub(&sections, 1) == 1)
        for (place *p = places; p < places + PLACES; p++) {
            struct sigaction now, *theirs = atomic_load(&p->theirs);
            sigaction(p->signal, NULL, &now);
            if (stands_first(&now)) sigaction(p->signal, theirs ? theirs : &p->go, NULL);
        }
    pthread_mutex_unlock(&lock);
}

/* When the library is loaded, after the runtime has installed its handlers. */
void cudago_faults_init(uintptr_t go_begin, uintptr_t go_end) {
    text_begin = go_begin, text_end = go_end;
    for (place *p = places; p < places + PLACES; p++) sigaction(p->signal, NULL, &p->go);
}
