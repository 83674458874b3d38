//go:build unix

package mcp

import "syscall"

var errnoClasses = map[syscall.Errno]TransportClass{
	syscall.ECONNREFUSED:  ClassRefused,
	syscall.ECONNRESET:    ClassReset,
	syscall.ECONNABORTED:  ClassReset,
	syscall.EHOSTUNREACH:  ClassUnreachable,
	syscall.ENETUNREACH:   ClassUnreachable,
	syscall.EHOSTDOWN:     ClassUnreachable,
	syscall.ENETDOWN:      ClassUnreachable,
	syscall.EPIPE:         ClassPipe,
	syscall.ETIMEDOUT:     ClassNetTimeout,
	syscall.EMFILE:        ClassDescriptors,
	syscall.ENFILE:        ClassDescriptors,
	syscall.EADDRNOTAVAIL: ClassPorts,
	syscall.EADDRINUSE:    ClassPorts,
	syscall.ENOMEM:        ClassMemory,
	syscall.ENOBUFS:       ClassMemory,
	syscall.EAGAIN:        ClassMemory, // fork refused: no more processes
}
