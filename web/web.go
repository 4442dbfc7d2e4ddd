// Package web has the web UI in it: one application of React and TypeScript, whose sources are beside this file and which npm builds into
// dist.
//
// The page holds no data. It asks the API for everything, with the session of the browser, so that it can show nothing and do nothing that
// the API would refuse. A binary that was built without npm, or with the tag noweb, works without it and says how to get it.
package web

// Places are the addresses at which the UI is, besides the first page. What follows them is the UI's own affair.
func Places() []string {
	return []string{"/workflows", "/executions", "/inbox", "/agents", "/settings", "/docs"}
}
