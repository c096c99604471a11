package fila_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTheExamplesDoWhatTheySay(t *testing.T) {
	dir := t.TempDir()
	if text, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./examples/...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for name, wanted := range map[string][]string{
		"produce-consume": {"received message 0", "received message 9"},
		"fairness":        {"all ten of the quiet tenant were served among the first 20 of 1010"},
		"throttling":      {"took at least 400 ms: true; the free ones were done before them: true"},
		"retries":         {"attempt 0 fails", "attempt 2 fails", "1 dead letter moved back", "job is done"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			text, err := exec.CommandContext(ctx, filepath.Join(dir, name), addr).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			for _, line := range wanted {
				if !strings.Contains(string(text), line) {
					t.Errorf("%q is missing in\n%s", line, text)
				}
			}
		})
	}
}

// Mistake of earlier clients: a package name in the README that is not the package's.
func TestTheREADMENamesThisModule(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	module, err := os.ReadFile("go.mod")
	must(t, err)
	path := strings.Fields(string(module))[1]
	for _, wanted := range []string{"go get " + path + "\n", `fila "` + path + `"`} {
		if !strings.Contains(string(readme), wanted) {
			t.Errorf("README.md does not say %q", wanted)
		}
	}
}

func TestTheREADMEsProgramsRun(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	programs := strings.Split(string(readme), "```go\npackage main")
	if len(programs) < 2 {
		t.Fatal("README.md has no program")
	}
	for _, rest := range programs[1:] {
		program, _, _ := strings.Cut(rest, "```")
		// Inside the module, so that its own sources are what is imported.
		dir, err := os.MkdirTemp(".", "readme-test-")
		must(t, err)
		defer os.RemoveAll(dir)
		source := "package main" + strings.ReplaceAll(program, "localhost:5555", addr)
		must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		binary := filepath.Join(t.TempDir(), "program")
		if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./"+dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, text, source)
		}
		if text, err := exec.CommandContext(ctx, binary).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, text, source)
		}
	}
}
