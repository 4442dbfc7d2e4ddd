package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// ActivationID addresses one visit of an execution to a node: the path of its scope and the node's segment,
// "fetch" at the top level, "each[2]/fetch" in the third iteration of each.
type ActivationID string

// TimerID and AskID are unique within an execution.
type (
	TimerID string
	AskID   string
)

// TimerPurpose says what a timer is for.
type TimerPurpose string

// The purposes of timers.
const (
	TimerRetry     TimerPurpose = "retry"     // a failed attempt's backoff
	TimerWait      TimerPurpose = "wait"      // an attempt waits until then
	TimerJoin      TimerPurpose = "join"      // a join fires with what has arrived
	TimerDeadline  TimerPurpose = "deadline"  // a scope's time is up
	TimerExecution TimerPurpose = "execution" // the execution's time is up
)

// Split returns the path of the activation's scope ("" for the top level) and its name in that scope.
func (id ActivationID) Split() (scope, name string) {
	i := strings.LastIndexByte(string(id), '/')
	if i < 0 {
		return "", string(id)
	}
	return string(id[:i]), string(id[i+1:])
}

// joinID returns the id of the activation called name in a scope.
func joinID(scope, name string) ActivationID {
	if scope == "" {
		return ActivationID(name)
	}
	return ActivationID(scope + "/" + name)
}

// iterationPath returns the path of the scope of an activation's iteration.
func iterationPath(owner ActivationID, index int64) string {
	return string(owner) + "[" + strconv.FormatInt(index, 10) + "]"
}

// ownerOf returns the activation that opened the scope with this path; not ok for the top level.
func ownerOf(path string) (owner ActivationID, ok bool) {
	i := strings.LastIndexByte(path, '[')
	if i < 0 {
		return "", false
	}
	return ActivationID(path[:i]), true
}

// skippedPath is the scope path of a body that never ran: its nodes get one record each, without an index.
func skippedPath(owner ActivationID) string { return string(owner) + "[]" }

// ChildID returns the id of the execution that an activation starts. It depends on nothing else, so a start that is
// repeated after a crash finds the child it has already made.
func ChildID(parent string, activation ActivationID, generation uint32) string {
	h := sha256.New()
	h.Write([]byte(parent))
	h.Write([]byte{0})
	h.Write([]byte(activation))
	h.Write([]byte{0})
	h.Write([]byte(strconv.FormatUint(uint64(generation), 10)))
	return "child_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// NthChildID is ChildID for an activation that starts several children in one generation, counted from 0.
func NthChildID(parent string, activation ActivationID, generation uint32, n int) string {
	if n > 0 {
		activation += ActivationID("#" + strconv.Itoa(n))
	}
	return ChildID(parent, activation, generation)
}

// Status is the status of an execution.
type Status string

// The statuses of an execution.
const (
	StatusNew             Status = "NEW"
	StatusPending         Status = "PENDING"
	StatusRunning         Status = "RUNNING"
	StatusPaused          Status = "PAUSED"
	StatusWaiting         Status = "WAITING"
	StatusWaitingForHuman Status = "WAITING_FOR_HUMAN"
	StatusSuccess         Status = "SUCCESS"
	StatusError           Status = "ERROR"
	StatusCanceled        Status = "CANCELED"
	StatusTimeout         Status = "TIMEOUT"
)

// Statuses lists all statuses of an execution, in the order in which it can reach them.
func Statuses() []Status {
	return []Status{
		StatusNew, StatusPending, StatusRunning, StatusPaused, StatusWaiting, StatusWaitingForHuman,
		StatusSuccess, StatusError, StatusCanceled, StatusTimeout,
	}
}

// Final says that an execution with this status has ended.
func (s Status) Final() bool {
	switch s {
	case StatusSuccess, StatusError, StatusCanceled, StatusTimeout:
		return true
	}
	return false
}

// NodeStatus is the status of an activation.
type NodeStatus string

// The statuses of an activation.
const (
	NodePending      NodeStatus = "pending"
	NodeRunning      NodeStatus = "running"
	NodeWaitingInput NodeStatus = "waiting_input"
	NodeDone         NodeStatus = "completed"
	NodeFailure      NodeStatus = "failed"
	NodeSkip         NodeStatus = "skipped"
	NodeRetrying     NodeStatus = "retrying"
	NodeCanceled     NodeStatus = "canceled"
)
