//go:build noweb

package web

import "io/fs"

// Files has nothing: the binary was built without the UI.
func Files() fs.FS { return nil }
