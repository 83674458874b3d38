package mcp

type Ending uint8

const (
	EndOrderly Ending = iota
	EndSilent
	EndDrop
)
