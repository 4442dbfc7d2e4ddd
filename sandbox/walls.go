package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Wall is one part of what is between untrusted code and the machine.
type Wall struct {
	// Name is files, network, processes, memory or environment; the interpreter itself is always there.
	Name string `json:"name"`
	// Up says that a child on this machine was refused when it tried.
	Up bool `json:"up"`
	// How says what holds, or what is missing.
	How string `json:"how"`
}

// probeMode is a child that raises its walls, runs against them and tells what happened.
const probeMode = "probe"

// Walls starts a child and has it try what code must never be able to do. It is meant for a check of the machine, not
// for every start.
func Walls(ctx context.Context) ([]Wall, error) {
	ch, err := spawn(laneKey{}, probeMode, "")
	if err != nil {
		return nil, fmt.Errorf("start a process for the sandbox: %w", err)
	}
	defer func() { <-ch.gone }()
	defer ch.kill()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, ch.kill)
	defer stop()
	r, err := ch.readReply()
	if err != nil {
		return nil, fmt.Errorf("ask a process of the sandbox for its walls: %w", ch.explain(err))
	}
	var walls []Wall
	if err := json.Unmarshal(r.value, &walls); err != nil {
		return nil, fmt.Errorf("ask a process of the sandbox for its walls: %w: %s", err, r.message)
	}
	return walls, nil
}
