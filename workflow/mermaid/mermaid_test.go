package mermaid

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/workflow"
)

func TestDraw(t *testing.T) {
	t.Parallel()
	node := func(id, typ, subtype string) workflow.Node { return workflow.Node{ID: id, Type: typ, Subtype: subtype} }
	def := &workflow.Definition{
		Nodes: []workflow.Node{
			node("start", "TRIGGER", "MANUAL"), node("loop", "FLOW", "LOOP"), node("ai", "AI_AGENT", "LLM"), node("mem", "MEMORY", "KEY_VALUE_STORE"), node("end", "CALL", "EMPTY"),
		},
		Connections: []workflow.Connection{{FromNode: "start", ToNode: "loop"}, {FromNode: "loop", ToNode: "ai"}, {FromNode: "ai", ToNode: "loop"}, {FromNode: "loop", ToNode: "end"}},
	}
	def.Nodes[2].AttachedNodes = []string{"mem"}
	def.Nodes[2].Name = "a\"]<b>\n`end`;#%%{x}|(y)\\"
	graph := &workflow.Graph{
		Nodes:  []workflow.GraphNode{{}, {Name: "loop", Opens: 1}, {Body: 1, Uses: []int{3}}, {Attached: true}, {}},
		Edges:  []workflow.Edge{{From: 0, To: 1, Key: "result"}, {From: 1, To: 2, Key: "iteration", Entry: true}, {From: 2, To: 1, Key: "result", Back: true}, {From: 1, To: 4, Key: "completed"}},
		Bodies: []workflow.Body{{Owner: -1, Nodes: []int{0, 1, 4}}, {Owner: 1, Nodes: []int{2}}},
	}
	want := `flowchart TD
  n0(["start<br/>TRIGGER.MANUAL"])
  n1{{"loop<br/>FLOW.LOOP"}}
  subgraph b1["body of loop"]
    n2["a#34;#93;#60;b#62; #96;end#96;#59;#35;#37;#37;#123;x#125;#124;#40;y#41;#92;<br/>AI_AGENT.LLM"]
  end
  n4["end<br/>CALL.EMPTY"]
  n3[("mem<br/>MEMORY.KEY_VALUE_STORE")]
  n0 --> n1
  n1 -->|"iteration"| n2
  n2 -.-> n1
  n1 -->|"completed"| n4
  n2 -.- n3
`
	if diff := cmp.Diff(want, Draw(def, graph)); diff != "" {
		t.Error(diff)
	}
	if flat := Draw(def, nil); strings.Contains(flat, "subgraph") || !strings.Contains(flat, "n2 --> n1") || !strings.Contains(flat, "n2 -.- n3") {
		t.Errorf("without a graph: %s", flat)
	}
}
