// Command mcpbench puts load on servers that speak the Model Context Protocol
// and measures how they answer.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv,
	}))
}
