// Package reference tells people about the kinds of nodes: their fields in order, their examples as YAML to copy, and the pages of
// docs/nodes. It says nothing of its own: everything is made from what the kinds say of themselves.
package reference
