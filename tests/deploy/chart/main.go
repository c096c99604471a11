// Renders a Helm chart for tests, without Helm: the same template language and functions (sprig,
// include, toYaml, fail, required), values merged over the chart's own.
//
//	chart DIR RELEASE < values.json
//
// Writes a JSON array of the rendered objects; exits with 1 and the message when the chart refuses.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

type object = map[string]any

func main() {
	rendered, err := render(os.Args[1], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(rendered)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func render(dir, release string) ([]object, error) {
	chart, values, given := object{}, object{}, object{}
	if err := read(filepath.Join(dir, "Chart.yaml"), &chart); err != nil {
		return nil, err
	}
	if err := read(filepath.Join(dir, "values.yaml"), &values); err != nil {
		return nil, err
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		return nil, err
	}
	data := object{
		"Values":  merge(values, given),
		"Chart":   object{"Name": chart["name"], "Version": chart["version"], "AppVersion": chart["appVersion"]},
		"Release": object{"Name": release, "Namespace": "default", "Service": "Helm"},
	}
	all := template.New("chart").Option("missingkey=zero")
	all.Funcs(functions(all))
	paths, err := filepath.Glob(filepath.Join(dir, "templates", "*"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if _, err := all.New(filepath.Base(path)).Parse(string(text)); err != nil {
			return nil, err
		}
	}
	return execute(all, paths, data)
}

func execute(all *template.Template, paths []string, data object) ([]object, error) {
	found := []object{}
	for _, path := range paths {
		name := filepath.Base(path)
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, name, data); err != nil {
			return nil, err
		}
		text := strings.ReplaceAll(out.String(), "<no value>", "")
		if name == "NOTES.txt" {
			found = append(found, object{"kind": "Notes", "text": text})
			continue
		}
		for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
			one := object{}
			if err := yaml.UnmarshalStrict([]byte(document), &one); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			if len(one) > 0 {
				found = append(found, one)
			}
		}
	}
	return found, nil
}

func functions(all *template.Template) template.FuncMap {
	known := sprig.TxtFuncMap()
	delete(known, "env")
	delete(known, "expandenv")
	known["include"] = func(name string, data any) (string, error) {
		var out bytes.Buffer
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	known["toYaml"] = func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	known["fail"] = func(text string) (string, error) { return "", errors.New(text) }
	known["required"] = func(text string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errors.New(text)
		}
		return value, nil
	}
	return known
}

func read(path string, into *object) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}

func merge(under, over object) object {
	for name, value := range over {
		below, isMap := under[name].(object)
		above, alsoMap := value.(object)
		if isMap && alsoMap {
			value = merge(below, above)
		}
		under[name] = value
	}
	return under
}
