package validation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tandem/credential"
	"tandem/node"
	"tandem/workflow"
)

// InlineSecrets reports secrets that stand in a definition. Whoever may read a workflow reads all of it, and so does whoever it is
// sent to; credentials are sealed, and what they hold is hidden in records and logs.
func InlineSecrets(def *workflow.Definition, known []workflow.Problem) []workflow.Problem {
	document, err := json.Marshal(def)
	if err != nil {
		return nil // a definition that was read can be written; if not, saving it says so
	}
	var problems []workflow.Problem
	for _, found := range credential.FindInline(document) {
		if slices.ContainsFunc(known, func(p workflow.Problem) bool { return p.Code == node.ProblemInlineSecret && p.Path == found.Path }) {
			continue
		}
		p := workflow.Problem{Severity: workflow.SeverityError, Code: node.ProblemInlineSecret, Path: found.Path}
		remedy := "create a credential with it (POST /api/v1/credentials), set credential_id to its name and remove it here"
		if !strings.Contains(found.Path, ".configurations.") {
			remedy = "keep it in a credential of the node that needs it, or hand it over as an input when an execution is started"
		}
		p.Message = fmt.Sprintf("%s is a secret, which a workflow must not hold: everybody who may read the workflow could read it; %s", found.What, remedy)
		if !found.Certain {
			p.Severity = workflow.SeverityWarning
			p.Message = fmt.Sprintf("%s may be a secret, which a workflow must not hold; if it is, %s", found.What, remedy)
		}
		problems = append(problems, p)
	}
	return problems
}
