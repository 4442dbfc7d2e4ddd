// Package login is how people come in with a browser: sessions that begin with a token, an invitation or a provider of identities (OpenID
// Connect), and how they end. It registers the routes and pages of it; who is let in by a session is decided by package route, and what
// users may do by their roles.
package login
