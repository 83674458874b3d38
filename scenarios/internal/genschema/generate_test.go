package main

import (
	"bytes"
	"os"
	"testing"
)

func TestCommittedSchemaIsCurrent(t *testing.T) {
	want, err := generate("../grammar")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../mcpbench.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("scenarios/mcpbench.schema.json differs from the grammar's types; run go generate ./scenarios")
	}
}
