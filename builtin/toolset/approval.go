package toolset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/identity"
	"tandem/mcp"
	"tandem/node"
	"tandem/payload"
)

// Approves reads an answer. Only a plain yes is one: an answer that says yes in one field and something else in another is
// none.
func Approves(raw json.RawMessage) bool {
	if string(raw) == "true" {
		return true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return false
	}
	yes := false
	for name, value := range fields { // order does not matter: all are asked
		switch name {
		case "approved", "confirm":
			if string(value) != "true" {
				return false
			}
			yes = true
		case "action", "selected_option", "option":
			if text := strings.ToLower(values.Text(value)); text != "approve" && text != "approved" {
				return false
			}
			yes = true
		}
	}
	return yes
}

// Which calls of a tool a person decides about: none, those of the class once, all.
const (
	ApproveNever  = "never"
	ApproveOnce   = "once"
	ApproveAlways = "always"
)

// HeldCall says that a person has to be asked about a call that was judged when nobody wanted that.
type HeldCall struct{ Verdict mcp.Verdict }

func (h *HeldCall) Error() string { return "somebody has to be asked about the call" }

// SaysForbidden says that a tool has refused for lack of permission, in its own words.
func SaysForbidden(text string) bool {
	text = strings.ToLower(text)
	for _, words := range []string{
		"permission denied", "permission_denied", "access denied", "access is denied", "not permitted", "not authorized", "not authorised",
		"unauthorized", "unauthorised", "forbidden",
		"insufficient permission", "insufficient privilege", "insufficient scope", "no permission", "lacks permission", "lack permission",
		"do not have permission", "does not have permission", "not allowed to",
		"权限不足", "没有权限", "无权限", "无权", "未授权", "拒绝访问", "禁止访问", "权限被拒绝",
	} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// ArgumentsHash names a tool with exactly these arguments.
func ArgumentsHash(tool string, arguments json.RawMessage) (string, error) {
	canonical, err := payload.Canonical(arguments)
	if err != nil {
		return "", fault.Newf(fault.Internal, "the arguments of %q cannot be read: %w", tool, err)
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), canonical...))
	return hex.EncodeToString(sum[:]), nil
}

// Caller is for whom a call uses tools.
func Caller(call *node.Call) identity.Principal {
	return identity.Principal{Workspace: call.Workspace, User: call.UserID}
}
