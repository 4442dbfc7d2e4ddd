package task_test

import (
	"testing"

	"tandem/builtin/models"
	"tandem/builtin/task"
	"tandem/mcp"
	"tandem/node/nodetest"
)

func TestKinds(t *testing.T) {
	t.Parallel()
	kinds := nodetest.Of(task.Kinds(task.Deps{Models: &models.Models{}, Tools: &mcp.Pool{}, Agents: &people{}})...)
	nodetest.Conform(t, kinds)
}
