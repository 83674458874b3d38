package mcp

import (
	"syscall"

	"golang.org/x/sys/windows"
)

var errnoClasses = map[syscall.Errno]TransportClass{
	windows.WSAECONNREFUSED:           ClassRefused,
	windows.WSAECONNRESET:             ClassReset,
	windows.WSAECONNABORTED:           ClassReset,
	windows.WSAEHOSTUNREACH:           ClassUnreachable,
	windows.WSAENETUNREACH:            ClassUnreachable,
	windows.WSAEHOSTDOWN:              ClassUnreachable,
	windows.WSAENETDOWN:               ClassUnreachable,
	windows.ERROR_BROKEN_PIPE:         ClassPipe,
	windows.ERROR_NO_DATA:             ClassPipe,
	windows.WSAETIMEDOUT:              ClassNetTimeout,
	windows.WSAEMFILE:                 ClassDescriptors,
	windows.ERROR_TOO_MANY_OPEN_FILES: ClassDescriptors,
	windows.WSAEADDRNOTAVAIL:          ClassPorts,
	windows.WSAEADDRINUSE:             ClassPorts,
	windows.ERROR_NOT_ENOUGH_MEMORY:   ClassMemory,
	windows.WSAENOBUFS:                ClassMemory,
}
