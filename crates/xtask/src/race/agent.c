/* The agent of the race: it behaves like `codex exec` (or `claude -p`) and costs almost nothing.
 *
 * The caller's environment may not arrive here, so the prompt chooses the behaviour:
 *   RACE_TIMED  work for 200 ms, then write the monotonic time of the end, in nanoseconds, to RACE_DIR/end
 *   RACE_HANG   ignore SIGINT, SIGTERM and SIGHUP, start a child in a session of its own, and sleep for a minute
 * RACE_DIR is defined by the compiler's command line. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HANG_SECONDS 60
#define TIMED_MICROSECONDS 200000

static char input[1 << 16];

/* Whether the prompt, which is an argument or standard input, has this word. */
static int prompt_has(int argc, char **argv, const char *word) {
    for (int at = 1; at < argc; at++)
        if (strstr(argv[at], word))
            return 1;
    return strstr(input, word) != NULL;
}

/* Reads standard input to its end, as Codex does even if the prompt is an argument. */
static void read_input(void) {
    size_t length = 0;
    ssize_t got;
    char rest[4096];
    while (length < sizeof input - 1 && (got = read(0, input + length, sizeof input - 1 - length)) > 0)
        length += (size_t)got;
    while (length == sizeof input - 1 && read(0, rest, sizeof rest) > 0)
        ;
}

static void print(int fd, const char *text) {
    if (write(fd, text, strlen(text)) < 0)
        _exit(1);
}

static void write_file(const char *path, const char *text) {
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0)
        _exit(1);
    print(file, text);
    close(file);
}

static void hang(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    if (fork() == 0) {
        setsid();
        for (int fd = 0; fd < 64; fd++)
            close(fd);
    }
    write_file(RACE_DIR "/hanging", "");
    for (int second = 0; second < HANG_SECONDS; second++)
        sleep(1);
    _exit(0);
}

static void write_end(void) {
    struct timespec now;
    char text[64];
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(text, sizeof text, "%lld\n", (long long)now.tv_sec * 1000000000LL + now.tv_nsec);
    write_file(RACE_DIR "/end", text);
}

int main(int argc, char **argv) {
    int json = 0;
    for (int at = 1; at < argc; at++) {
        if (!strcmp(argv[at], "--version")) {
            print(1, "codex-cli 0.166.0\n");
            return 0;
        }
        if (!strcmp(argv[at], "--json") || !strcmp(argv[at], "--experimental-json"))
            json = 1;
    }
    read_input();
    if (json)
        print(1, "{\"type\":\"thread.started\",\"thread_id\":\"019a0000-0000-7000-8000-000000000000\"}\n"
                 "{\"type\":\"turn.started\"}\n");
    if (prompt_has(argc, argv, "RACE_HANG"))
        hang();
    int timed = prompt_has(argc, argv, "RACE_TIMED");
    if (timed)
        usleep(TIMED_MICROSECONDS);
    if (json)
        print(1, "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\","
                 "\"text\":\"RACE_DONE\"}}\n"
                 "{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":100,\"cached_input_tokens\":0,"
                 "\"output_tokens\":10}}\n");
    else
        print(1, "RACE_DONE\n");
    for (int at = 1; at + 1 < argc; at++)
        if (!strcmp(argv[at], "--output-last-message") || !strcmp(argv[at], "-o"))
            write_file(argv[at + 1], "RACE_DONE\n");
    if (timed)
        write_end();
    return 0;
}
