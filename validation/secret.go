package validation

import (
	"encoding/json"
	"slices"
	"strings"

	"tandem/credential"
	"tandem/node"
	"tandem/text"
	"tandem/workflow"
)

// InlineSecrets reports secrets that stand in a definition. Anyone who may read a workflow reads all of it, and so does everybody whom it
// is sent to; credentials are sealed, and what they hold is hidden in records and logs.
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
		remedy := text.Of("create a credential with it (POST /api/v1/credentials), set credential_id to its name and remove it here")
		if !strings.Contains(found.Path, ".configurations.") {
			remedy = text.Of("keep it in a credential of the node that needs it, or hand it over as an input when an execution is started")
		}
		words := text.Of("%s is a secret, which a workflow must not hold: everybody who may read the workflow could read it; %s", found.What, remedy)
		if !found.Certain {
			p.Severity = workflow.SeverityWarning
			words = text.Of("%s may be a secret, which a workflow must not hold; if it is, %s", found.What, remedy)
		}
		problems = append(problems, p.Saying(words))
	}
	return problems
}
