package server

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"tandem/fault"
	"tandem/identity"
	"tandem/route"
	"tandem/store"
)

// channelPath is the beginning of the addresses that media call; channel, workspace and credential follow.
const channelPath = "/channels/"

// maxChannelBody is how large a request of a medium may be.
const maxChannelBody = 1 << 20

// channels registers the addresses to which media send replies: clicks on buttons, messages to a bot. They have no token
// of a user: each channel checks by the account's credential that a request is genuine, before anything in it is believed.
func (s *Server) channels() {
	receive := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		err := s.channel(w, r)
		if err == nil {
			return
		}
		if route.Begun(w) {
			s.Log.WarnContext(r.Context(), "a reply of a channel was answered and then failed", "channel", r.PathValue("channel"), "workspace", r.PathValue("workspace"), "error", err)
			return
		}
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			err = route.TooLarge(maxChannelBody)
		}
		err = cmp.Or(route.BodyRefused(r.Context()), err)
		if slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound},
			route.StatusOf(err, fault.CodeOf(err))) {
			if many := s.Calls.Failed(s.AddressOf(r.Context()), identity.HashSecret(r.URL.Path)); many != nil {
				s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, many)) // and the log is spared
				return
			}
		}
		s.Log.InfoContext(r.Context(), "a call of a channel was refused", "channel", r.PathValue("channel"), "workspace", r.PathValue("workspace"), "credential", r.PathValue("credential"),
			"why", err.Error(), "detail", fault.From(err).Detail)
		s.Refuse(w, r, s.Problem(r.Context(), identity.Principal{}, err))
	}
	s.ToStrangers(channelPath, "{channel}/{workspace}/{credential}", maxChannelBody, map[string]http.HandlerFunc{http.MethodPost: receive})
}

// channelUnknown is the same error whichever part of an address is wrong, so that strangers cannot find out workspaces and credentials.
func channelUnknown() error {
	return fault.New(fault.NotFound, "no channel is called back here; use the address as Tandem shows it")
}

func (s *Server) channel(w http.ResponseWriter, r *http.Request) error {
	account := store.Account{Workspace: r.PathValue("workspace"), Channel: r.PathValue("channel"), Credential: r.PathValue("credential")}
	if identity.CheckWorkspace(account.Workspace) != nil {
		return channelUnknown()
	}
	return s.channelOf(w, r, account)
}

// channelOf hands a request to the channel of an account.
func (s *Server) channelOf(w http.ResponseWriter, r *http.Request, account store.Account) error {
	receiver, ok := s.o.Desk.Receiver(account.Channel)
	if !ok {
		return channelUnknown()
	}
	switch _, err := s.o.Stores.Credentials.Get(r.Context(), identity.System(account.Workspace), account.Credential); {
	case errors.Is(err, store.ErrNotFound):
		return channelUnknown()
	case err != nil:
		return err
	}
	return receiver.Receive(w, r, s.o.Desk.Account(account), s.o.Desk.Receive)
}
