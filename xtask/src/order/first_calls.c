// Writes the names of a program's functions in the order in which they are called for the first time.
//
//   cc -shared -fPIC -O2 -o first_calls.so first_calls.c
//   FIRST_CALLS=order.txt FIRST_CALLS_OF=$PWD/program LD_PRELOAD=./first_calls.so ./program
//
// Each function begins with a breakpoint, which is taken away when it is hit. The program must have its symbols; what other
// programs it starts, or is started by, is left alone. x86-64 Linux.
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

struct function { uintptr_t at; const char *name; unsigned char first_byte; };
static struct function *functions;
static size_t count;
static int out = -1;

static int by_address(const void *a, const void *b) {
    uintptr_t x = ((const struct function *)a)->at, y = ((const struct function *)b)->at;
    return x < y ? -1 : x > y;
}

static void hit(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *rip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    struct function key = { .at = (uintptr_t)*rip - 1 };
    struct function *found = bsearch(&key, functions, count, sizeof key, by_address);
    if (!found) return;
    *rip -= 1;
    // Another thread may have been faster.
    if (__sync_bool_compare_and_swap((unsigned char *)found->at, 0xCC, found->first_byte)) {
        char line[4096];
        size_t length = strlen(found->name);
        if (length < sizeof line) {
            memcpy(line, found->name, length);
            line[length] = '\n';
            if (write(out, line, length + 1) < 0) _exit(1);
        }
    }
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base) {
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FIRST_CALLS"), *of = getenv("FIRST_CALLS_OF");
    char name[4096];
    ssize_t length = readlink("/proc/self/exe", name, sizeof name - 1);
    if (!path || !of || length < 0) return;
    name[length] = 0;
    int self = open(name, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    if (strcmp(name, of) || self < 0 || fstat(self, &stat) < 0) return;
    char *file = mmap(0, stat.st_size, PROT_READ, MAP_PRIVATE, self, 0);
    if (file == MAP_FAILED) return;
    uintptr_t base = 0;
    dl_iterate_phdr(first_object, &base);
    Elf64_Ehdr *head = (Elf64_Ehdr *)file;
    Elf64_Shdr *sections = (Elf64_Shdr *)(file + head->e_shoff);
    Elf64_Sym *symbols = 0;
    const char *names = 0;
    size_t all = 0;
    for (int at = 0; at < head->e_shnum; at++)
        if (sections[at].sh_type == SHT_SYMTAB) {
            symbols = (Elf64_Sym *)(file + sections[at].sh_offset);
            all = sections[at].sh_size / sizeof *symbols;
            names = file + sections[sections[at].sh_link].sh_offset;
        }
    functions = calloc(all + 1, sizeof *functions);
    for (size_t at = 0; at < all; at++)
        if (ELF64_ST_TYPE(symbols[at].st_info) == STT_FUNC && symbols[at].st_size && symbols[at].st_shndx < head->e_shnum
            && sections[symbols[at].st_shndx].sh_flags & SHF_EXECINSTR)
            functions[count++] = (struct function){ base + symbols[at].st_value, names + symbols[at].st_name, 0 };
    qsort(functions, count, sizeof *functions, by_address);
    if (!count) return;
    out = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct sigaction action = { .sa_sigaction = hit, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };
    sigaction(SIGTRAP, &action, 0);
    for (size_t at = 0; at < head->e_phnum; at++) {
        Elf64_Phdr *part = (Elf64_Phdr *)(file + head->e_phoff) + at;
        uintptr_t from = (base + part->p_vaddr) & ~4095UL, to = base + part->p_vaddr + part->p_memsz;
        if (part->p_type == PT_LOAD && part->p_flags & PF_X && mprotect((void *)from, to - from, PROT_READ | PROT_WRITE | PROT_EXEC)) _exit(1);
    }
    for (size_t at = 0; at < count; at++)
        if (!at || functions[at].at != functions[at - 1].at) {
            functions[at].first_byte = *(unsigned char *)functions[at].at;
            *(unsigned char *)functions[at].at = 0xCC;
        } else
            functions[at].first_byte = functions[at - 1].first_byte;
}
