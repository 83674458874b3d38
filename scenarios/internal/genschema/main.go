// Command genschema writes the JSON Schema of scenarios from the types of the
// grammar package. It is run by go generate in the scenarios folder.
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	out := flag.String("o", "mcpbench.schema.json", "file to write")
	source := flag.String("grammar", "internal/grammar", "folder of the grammar package, for its comments")
	flag.Parse()
	data, err := generate(*source)
	if err == nil {
		err = os.WriteFile(*out, data, 0o644) //nolint:gosec // a source file, for everyone to read
	}
	if err != nil {
		log.Fatalln("genschema:", err)
	}
}
