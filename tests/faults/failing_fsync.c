/* fsync and fdatasync that fail once, at the call numbered FAIL_AT, with "input/output error"; FAIL_AT=0 only counts.
   The number of calls is written to the file FSYNC_COUNT names. For test_fsync.py, through LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int fails(void) {
    static int calls = 0;
    const char *at = getenv("FAIL_AT"), *report = getenv("FSYNC_COUNT");
    calls++;
    if (report) {
        FILE *file = fopen(report, "w");
        if (file) {
            fprintf(file, "%d", calls);
            fclose(file);
        }
    }
    if (at && atoi(at) == calls) {
        errno = EIO;
        return 1;
    }
    return 0;
}

int fsync(int handle) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    return fails() ? -1 : real(handle);
}

int fdatasync(int handle) {
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    return fails() ? -1 : real(handle);
}
