// Package settings serves what a workspace is set up with: its users and their tokens, credentials, profiles of language models, tool
// servers and the policies of their tools, templates of nodes, memories, and budgets. It registers its operations with package route.
//
// Package server serves it; no package below that one may import it.
package settings
