package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := generate(filepath.Join(root, "..", "..", "spec"))
	if err != nil {
		t.Fatal(err)
	}
	for name, wanted := range files {
		found, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(found, wanted) {
			t.Errorf("%s is not what spec/ says; run go generate ./...", name)
		}
	}
}

func TestNamesOfCausesReadAsWords(t *testing.T) {
	for name, wanted := range map[string]string{
		"QueueNotFound": "queue not found", "NotADLQ": "not a DLQ", "ApiKeyNotFound": "API key not found",
		"LuaCompilationError": "Lua compilation error",
	} {
		if got := words(name); got != wanted {
			t.Errorf("words(%q) = %q, want %q", name, got, wanted)
		}
	}
}
