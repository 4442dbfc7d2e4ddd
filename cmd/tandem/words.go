package main

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tandem/console"
	"tandem/text"
)

// commandOf says which command does what a request of the API does, for what the API tells people to do.
func commandOf(request string) (command string, ok bool) {
	command, ok = map[string]string{
		"GET /api/v1/node-kinds":   "tandem nodes",
		"GET /api/v1/budgets":      "tandem budgets",
		"GET /api/v1/agents":       "tandem agent list",
		"POST /api/v1/credentials": "tandem credentials set",

		"PUT /api/v1/mcp/servers/{id}": "tandem mcp servers set",
	}[request]
	return command, ok
}

var (
	namedRequest = regexp.MustCompile(`\b(?:GET|POST|PUT|PATCH|DELETE) /api/v1/[a-z0-9/_{}-]*[a-z}]`)
	namedField   = regexp.MustCompile(`\b(?:query|body)\.([a-z_]+)\b`)
	namedSwitch  = regexp.MustCompile(`\b([a-z_]+)=true\b`)
	lackedInputs = regexp.MustCompile(`inputs(?:: |\x{ff1a})missing propert(?:y|ies) ((?:'[^']+'(?:, )?)+)`)
)

// inCommands puts what the API says into the words of a command: its flags instead of parameters and fields, commands instead of
// requests, and how an input that is missing is given.
func inCommands(cmd *cobra.Command, said string) string {
	flag := func(name string) *pflag.Flag { return cmd.Flags().Lookup(strings.ReplaceAll(name, "_", "-")) }
	said = namedRequest.ReplaceAllStringFunc(said, func(request string) string {
		if command, ok := commandOf(request); ok {
			return `"` + command + `"`
		}
		return request
	})
	said = namedField.ReplaceAllStringFunc(said, func(field string) string {
		_, name, _ := strings.Cut(field, ".")
		if f := flag(name); f != nil {
			return "--" + f.Name
		}
		return field
	})
	said = namedSwitch.ReplaceAllStringFunc(said, func(set string) string {
		name, _, _ := strings.Cut(set, "=")
		if f := flag(name); f != nil && f.Value.Type() == "bool" {
			return "--" + f.Name
		}
		return set
	})
	if lacked := lackedInputs.FindStringSubmatch(said); lacked != nil && flag("input") != nil {
		give := ""
		for name := range strings.SplitSeq(lacked[1], ", ") {
			name = strings.Trim(name, "'") + "=…"
			if strings.ContainsAny(name, " \t") {
				name = "'" + name + "'"
			}
			give += " --input " + name
		}
		said = strings.Replace(said, lacked[0], lacked[0]+text.Of("; give%s", give).In(console.UserLanguage()), 1)
	}
	return said
}
