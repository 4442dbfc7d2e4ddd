package app

import (
	"io"

	"tandem/validation"
	"tandem/workflow"
	"tandem/workflow/mermaid"
)

// Draw makes a Mermaid diagram of a workflow file's content. A workflow with errors is drawn as far as it goes, without
// the bodies of its loops; the drawing is empty when nothing could be read or there is nothing to draw.
func Draw(file string, data []byte) (drawing string, r Report) {
	kinds := Kinds()
	source, problems := workflow.Parse(data, workflow.Options{Kinds: kinds})
	if source != nil { // what cannot be run here can be drawn
		problems = source.Validate(validation.Rules(kinds))
	}
	r = validation.NewReport(file, problems)
	if source == nil || len(source.Definition.Nodes) == 0 {
		return "", r
	}
	// The reasons why it cannot be compiled are among the problems already.
	graph, _ := workflow.Compile(source.Definition, kinds)
	return mermaid.Draw(source.Definition, graph), r
}

// DrawFile is Draw for a file by name, or for stdin when the name is "-".
func DrawFile(file string, stdin io.Reader) (drawing string, r Report) {
	data, problem := validation.ReadFile(file, stdin)
	if problem != nil {
		return "", validation.NewReport(file, []workflow.Problem{*problem})
	}
	return Draw(file, data)
}
