//go:build !linux

package main

import "syscall"

// diesWithParent cannot be promised here: after a SIGKILL of rigd its children
// stay behind.
func diesWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
