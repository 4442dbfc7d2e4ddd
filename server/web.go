package server

import (
	"net/http"

	"tandem/fault"
	"tandem/identity"
	"tandem/web"
)

// webUI registers the web UI, and says whether it is there. Without it nothing is registered.
func (s *Server) webUI() (bool, error) {
	site, err := web.NewSite(s.o.Web)
	if site == nil || err != nil {
		return false, err
	}
	page := func(w http.ResponseWriter, r *http.Request) { s.sent(r, site.Page(w, http.StatusOK)) }
	s.Stray = func(w http.ResponseWriter, r *http.Request) { s.sent(r, site.Page(w, http.StatusNotFound)) }
	s.Public("GET /{$}", page)
	for _, place := range web.Places() {
		s.Public("GET "+place, page)
		s.Public("GET "+place+"/{rest...}", page)
	}
	s.Public("GET /assets/{file...}", func(w http.ResponseWriter, r *http.Request) {
		asset, err := site.Asset(r, r.PathValue("file"))
		if err != nil {
			s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, fault.Newf(fault.NotFound, "the web UI has no file %q; load the page again, it may be of an older version", r.PathValue("file"))))
			return
		}
		s.sent(r, asset.Send(w))
	})
	return true, nil
}

// sent notes that a browser has left before it had everything.
func (s *Server) sent(r *http.Request, err error) {
	if err != nil {
		s.Log.DebugContext(r.Context(), "the browser did not take the answer", "error", err)
	}
}
