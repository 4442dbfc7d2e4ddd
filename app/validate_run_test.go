package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tandem/agent"
	"tandem/workflow"
)

// problemCodes lists the problems of a report as code and path, those of a missing description left out.
func problemCodes(r Report) (list []string) {
	for _, p := range r.Problems {
		list = append(list, p.Code+" "+p.Path)
	}
	return list
}

// What cannot be run does not validate, without a server too: waits that end in unsupported, code
// that does not parse.
func TestValidate_WhatCannotRun(t *testing.T) {
	t.Parallel()
	const flow = "metadata: {id: f, name: f, description: d}\nnodes:\n  - {id: start, description: d, type: TRIGGER, subtype: MANUAL}\n  - {id: n, description: d, %s}\nconnections:\n  - {from_node: start, to_node: n%s}\n"
	for name, c := range map[string]struct{ node, connection, want, says string }{
		"WaitResource":     {node: `type: FLOW, subtype: WAIT, configurations: {wait_type: resource}`, want: "unsupported nodes[1].configurations.wait_type", says: "signal"},
		"WaitNoAddress":    {node: `type: FLOW, subtype: WAIT, configurations: {wait_type: api_response, api_config: {method: GET}}`, want: "invalid_config nodes[1].configurations.api_config.url", says: "is required"},
		"Webhook":          {node: `type: FLOW, subtype: WAIT, configurations: {wait_type: webhook}`},
		"APIResponse":      {node: `type: FLOW, subtype: WAIT, configurations: {wait_type: api_response, api_config: {url: "https://example.com"}}`},
		"File":             {node: `type: FLOW, subtype: WAIT, configurations: {wait_type: file, file_config: {file_path: a}}`},
		"Python":           {node: `type: ACTION, subtype: RUN_CODE, configurations: {code: "def main(data):\n  return ("}`, want: "invalid_code nodes[1].configurations.code", says: "line 2"},
		"JavaScript":       {node: `type: ACTION, subtype: RUN_CODE, configurations: {language: javascript, code: "function main(d) { return [ }"}`, want: "invalid_code nodes[1].configurations.code"},
		"Filter":           {node: `type: FLOW, subtype: FILTER, configurations: {filter_type: custom_function, custom_filter_function: "lambda x: x ="}`, want: "invalid_code nodes[1].configurations.custom_filter_function"},
		"Tool":             {node: `type: TOOL, subtype: CODE_TOOL, configurations: {code: "def main(:"}`, want: "invalid_code nodes[1].configurations.code"},
		"Conversion":       {node: `type: CALL, subtype: EMPTY`, connection: `, conversion_function: "def convert(x): return ("`, want: "invalid_conversion connections[0].conversion_function"},
		"PythonThatParses": {node: `type: ACTION, subtype: RUN_CODE, configurations: {code: "def main(data):\n  return {'a': [x for x in data]}"}`},
		"ScriptOfTheHost":  {node: `type: ACTION, subtype: EXECUTE_SCRIPT, configurations: {script: "echo (("}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Validate("f.yaml", []byte(fmt.Sprintf(flow, c.node, c.connection)))
			got := problemCodes(r)
			if c.want == "" {
				if !r.Valid {
					t.Errorf("problems %+v", r.Problems)
				}
				return
			}
			i := slices.Index(got, c.want)
			if r.Valid || i < 0 || !strings.Contains(r.Problems[i].Message, c.says) || r.Problems[i].Line == 0 {
				t.Errorf("problems %+v", r.Problems)
			}
		})
	}
}

// Every kind runs, except for that of the tasks of agents, which is refused.
func TestValidate_EveryKindRunsOrIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range Kinds().Names() {
		typ, subtype, _ := strings.Cut(name, ".")
		_, problems := check([]byte("metadata: {id: f, name: f}\nnodes: [{id: n, type: "+typ+", subtype: "+subtype+"}]\n"), Kinds(), nil)
		refused := slices.ContainsFunc(problems, func(p workflow.Problem) bool {
			return p.Path == "nodes[0].subtype" && p.Code == workflow.ProblemUnknownKind
		})
		if refused != (name == agent.TaskKind) {
			t.Errorf("%s: refused %v", name, refused)
		}
	}
}
