package action

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"tandem/node"
)

// Paging are the fields of operations that read lists; an operation says by Lists that it reads them.
type Paging struct {
	Limit  int    `json:"limit" range:"1..1000" doc:"How many entries are read at most." zh:"上限：最多读取的条目数。"`
	Cursor string `json:"cursor" doc:"Where to go on: next_cursor of an earlier run." zh:"游标：从何处继续，即此前运行的 next_cursor。"`
}

// DefaultLimit is the limit of lists, unless a node says so.
const DefaultLimit = 100

func pagingFields() []string { return []string{"limit", "cursor"} }

// Result is what kinds put out that act on the resources of a service. The answer of the service itself has another name in each of them.
type Result struct {
	Success      bool              `json:"success" doc:"Always true: a failure is an error." zh:"是否成功：始终为 true，失败会报错。"`
	Action       string            `json:"action" doc:"What was done." zh:"操作：执行的操作。"`
	ResourceID   string            `json:"resource_id" doc:"The id of what was made, changed or read; empty for lists." zh:"资源编号：所创建、更改或读取对象的编号；列表为空。"`
	ResourceURL  string            `json:"resource_url" doc:"Where people find it; empty if the service does not say." zh:"资源地址：供人查看的地址；服务未提供则为空。"`
	Items        []json.RawMessage `json:"items" doc:"The entries of a list." zh:"条目：列表中的条目。"`
	NextCursor   string            `json:"next_cursor" doc:"Where to go on when there are more." zh:"下一游标：有更多内容时从何处继续。"`
	Truncated    bool              `json:"truncated" doc:"Whether there are more than were read." zh:"是否截断：是否还有未读取的内容。"`
	RateLimit    json.RawMessage   `json:"rate_limit_info" doc:"What the service says of its limits: limit, remaining, reset; null if it says nothing." zh:"限流信息：服务告知的 limit、remaining、reset；未告知则为 null。"`
	ErrorMessage string            `json:"error_message" doc:"Always empty: a failure is an error, with its message." zh:"错误信息：始终为空，失败会报错并给出信息。"`
}

// Done says of a result what was done. A kind calls it when an operation has succeeded.
func (r *Result) Done(what string) {
	r.Success, r.Action, r.Truncated = true, what, r.NextCursor != ""
	if r.Items == nil {
		r.Items = []json.RawMessage{}
	}
	if r.RateLimit == nil {
		r.RateLimit = json.RawMessage("null")
	}
}

// Marker names what a node does in a service, the same in every attempt of it: what is made there has it with it, so that it is found
// again.
func Marker(call *node.Call, service string) string {
	sum := sha256.Sum256([]byte(service + "\x00" + call.EffectKey()))
	return hex.EncodeToString(sum[:16])
}

// Hidden is the marker for texts in Markdown or HTML, where people do not see it.
func Hidden(call *node.Call, service string) string {
	return "<!-- tandem " + Marker(call, service) + " -->"
}

// Marked is a text with a marker after it.
func Marked(text, marker string) string {
	if text == "" {
		return marker
	}
	return text + "\n\n" + marker
}
