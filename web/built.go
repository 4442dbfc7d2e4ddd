//go:build !noweb

package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS // read-only

// Files has the files of the UI. Without npm it has none but robots.txt.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil // dist is a path that can be had
	}
	return files
}
