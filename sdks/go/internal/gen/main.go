// Command gen writes the operation tables, body codecs and error codes from
// spec/operations.json and spec/errors.json.
//
// It owns every file whose name ends in _gen.go. Run it with
//
//	go generate ./...
//
// A test fails when a generated file is not current.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	files, err := generate(filepath.Join(root, "..", "..", "spec"))
	if err == nil {
		for name, content := range files {
			if err = os.WriteFile(filepath.Join(root, name), content, 0o644); err != nil {
				break
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// generate returns the content of every generated file by its path in the module.
func generate(spec string) (map[string][]byte, error) {
	operations, err := readOperations(filepath.Join(spec, "operations.json"))
	if err != nil {
		return nil, err
	}
	causes, err := readErrors(filepath.Join(spec, "errors.json"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, write := range map[string]func() string{
		"internal/wire/opcodes_gen.go": func() string { return opcodeFile(operations) },
		"internal/wire/bodies_gen.go":  func() string { return bodyFile(operations) },
		"internal/wire/codes_gen.go":   func() string { return codeFile(causes) },
		"causes_gen.go":                func() string { return causeFile(causes) },
	} {
		if files[name], err = formatted(name, write()); err != nil {
			return nil, err
		}
	}
	return files, nil
}
