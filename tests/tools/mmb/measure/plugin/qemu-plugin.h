/* SPDX-License-Identifier: GPL-2.0 */
#ifndef QEMU_PLUGIN_H
#define QEMU_PLUGIN_H

/*
 * What profile.c uses of QEMU's plugin interface, as its documentation has it:
 * Debian has QEMU's own header in no binary package.
 */

#include <stddef.h>

#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))

enum { QEMU_PLUGIN_CB_NO_REGS };

struct qemu_plugin_tb;
struct qemu_info;

typedef void (*qemu_plugin_tb_cb)(unsigned long long id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_exec_cb)(unsigned int cpu, void *data);
typedef void (*qemu_plugin_exit_cb)(unsigned long long id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(unsigned long long id, qemu_plugin_tb_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_exec_cb cb,
					  int flags, void *data);
void qemu_plugin_register_atexit_cb(unsigned long long id, qemu_plugin_exit_cb cb, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
unsigned long long qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);

#endif /* QEMU_PLUGIN_H */
