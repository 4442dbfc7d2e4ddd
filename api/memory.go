package api

import "encoding/json"

// Memory is one memory of one user: what a memory node, a session or an execution remembers.
type Memory struct {
	ID          string `json:"id"`
	UserID      string `json:"user_id" doc:"whose it is"`
	Kind        string `json:"kind" doc:"CONVERSATION_BUFFER and so on"`
	WorkflowID  string `json:"workflow_id,omitempty"`
	NodeID      string `json:"node_id,omitempty"`
	SessionID   string `json:"session_id,omitempty"`
	ExecutionID string `json:"execution_id,omitempty"`
	Part        string `json:"part,omitempty" doc:"tells several memories of one node apart: a collection, a namespace"`
	Records     int64  `json:"records"`
	Bytes       int64  `json:"bytes"`
	Version     int64  `json:"version" doc:"grows with every change"`
	CreatedTime int64  `json:"created_time"`
	UpdatedTime int64  `json:"updated_time"`
}

// Memories is a part of a listing, the last changed first.
type Memories struct {
	Memories   []Memory `json:"memories"`
	TotalCount int      `json:"total_count"`
	Page       int      `json:"page"`
	PageSize   int      `json:"page_size"`
}

// MemoryRecord is one thing that a memory keeps. Which fields mean something is up to the kind of memory.
type MemoryRecord struct {
	Sort        string          `json:"sort" doc:"tells records of different use apart: messages, the summary of them"`
	ID          string          `json:"id" doc:"unique among the records of a sort"`
	Body        json.RawMessage `json:"body"`
	Source      string          `json:"source,omitempty"`
	Target      string          `json:"target,omitempty"`
	Weight      float64         `json:"weight,omitempty"`
	Time        int64           `json:"time,omitempty" doc:"when what it tells of happened"`
	UsedTime    int64           `json:"used_time,omitempty" doc:"when it was last asked for"`
	ExpiresTime int64           `json:"expires_time,omitempty"`
	Version     int64           `json:"version"`
	CreatedTime int64           `json:"created_time"`
	UpdatedTime int64           `json:"updated_time"`
}

// MemoryRecords is a part of a memory's records, in the order in which they came.
type MemoryRecords struct {
	Memory     Memory         `json:"memory"`
	Records    []MemoryRecord `json:"records"`
	TotalCount int            `json:"total_count"`
	Page       int            `json:"page"`
	PageSize   int            `json:"page_size"`
}
