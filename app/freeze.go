package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"tandem/api"
	"tandem/workflow"
)

// FreezeTask makes a workflow of a task that has succeeded, and returns its definition as a file, too.
func (c *Connection) FreezeTask(ctx context.Context, execution string, r api.FreezeRequest, asJSON bool) (api.Frozen, []byte, error) {
	frozen, err := c.Freeze(ctx, execution, r)
	if err != nil {
		return frozen, nil, err
	}
	if !asJSON {
		file, err := workflow.ToYAML(frozen.Definition)
		return frozen, file, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, frozen.Definition, "", "  "); err != nil {
		return frozen, nil, fmt.Errorf("write the workflow of task %q: %w", execution, err)
	}
	out.WriteByte('\n')
	return frozen, out.Bytes(), nil
}
