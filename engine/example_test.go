package engine_test

import (
	"fmt"
	"log"

	"tandem/engine"
	"tandem/workflow"
)

// Drives an execution by hand, as a host does: every fact is applied to the state, which answers with what is to be done, and what came of
// that is the next fact. A host would have each fact on disk before it does anything.
func Example() {
	definition, problems := workflow.Parse([]byte(`{
		"metadata": {"id": "greet", "name": "greet"},
		"nodes": [
			{"id": "trigger", "name": "trigger", "type": "TRIGGER", "subtype": "TEST"},
			{"id": "greet", "name": "greet", "type": "TEST", "subtype": "STEP"}
		],
		"connections": [{"id": "c", "from_node": "trigger", "to_node": "greet"}]
	}`), workflow.Options{Kinds: testKinds{}})
	if definition == nil {
		log.Fatal(problems)
	}
	graph, problems := workflow.Compile(definition.Definition, testKinds{})
	if graph == nil {
		log.Fatal(problems)
	}
	state := engine.New(graph, nil)
	todo := []engine.Fact{
		engine.ExecutionCreated{Semantics: engine.Semantics, Execution: "exec_1", Revision: graph.Hash, Trigger: "trigger"}, engine.ExecutionStarted{},
	}
	for seq := uint64(1); len(todo) > 0; seq++ {
		fact := todo[0]
		todo = todo[1:]
		fmt.Printf("%T\n", fact)
		commands, err := state.Apply(engine.Event{Seq: seq, Time: 1000, Fact: fact})
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range commands {
			switch c := c.(type) {
			case engine.RunNode:
				fmt.Println("  run", c.Activation)
				todo = append(todo, engine.NodeCompleted{Attempt: c.Attempt, Outputs: []engine.Output{{Key: workflow.DefaultKey}}})
			case engine.Finish:
				fmt.Println("  ended:", c.Status)
			}
		}
	}
	// Output:
	// engine.ExecutionCreated
	// engine.ExecutionStarted
	//   run trigger
	// engine.NodeCompleted
	//   run greet
	// engine.NodeCompleted
	//   ended: SUCCESS
}
