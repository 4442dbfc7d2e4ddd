package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"tandem/api"
	"tandem/app"
	"tandem/client"
	"tandem/console"
	"tandem/console/table"
	"tandem/fault"
	"tandem/identity"
)

func newUsers() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use: "users", Aliases: []string{"user"}, Short: "Keep the users of the workspace: add, invite, role, disable, enable, remove, reach",
		Long: `A user has roles, which say what they may do: admin (everything), editor (workflows), operator (executions),
approver (answers questions), viewer (reads). They come in with a token, with an invitation, or by the
provider of identities that the server knows (tandem serve --oidc-issuer).`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newUsersList(&at), newUsersAdd(&at), newUsersInvite(&at), newUsersInvitations(&at), newUsersRole(&at),
		newUsersEnable(&at, true), newUsersEnable(&at, false), newUsersRemove(&at), newReach(&at, true))
	return cmd
}

func newUsersList(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List users", Args: cobra.NoArgs,
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Users, error) {
		return c.Users(ctx)
	}, console.PrintUsers)
}

func newUsersAdd(at *connectFlags) *cobra.Command {
	var r api.UserRequest
	cmd := &cobra.Command{
		Use: "add ID", Short: "Make a user, who can come in once they have a token",
		Example: "  tandem users add ann --name \"Ann B.\" --email ann@example.com --role operator\n  tandem tokens create laptop --user ann",
		Args:    one("id"),
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "their name; by default the id")
	cmd.Flags().StringVar(&r.Email, "email", "", "their mail address")
	cmd.Flags().StringSliceVar(&r.Roles, "role", []string{"viewer"}, "admin, editor, operator, approver or viewer; several with commas")
	return keeps(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.User, error) {
		r.ID, r.Name = args[0], cmp.Or(r.Name, args[0])
		return c.CreateUser(ctx, r)
	}, console.PrintUser)
}

func newUsersInvite(at *connectFlags) *cobra.Command {
	var r api.InvitationRequest
	life := lifetime{example: "48h"}
	cmd := &cobra.Command{
		Use: "invite EMAIL", Short: "Invite somebody: make a link with which they become a user, once",
		Long: `Invite makes a link. Whoever opens it becomes a user with the given roles, once and before it expires, and is shown
a token. Where people log in at a provider of identities, who has the verified address needs no link.`,
		Example: "  tandem users invite ann@example.com --role editor --expires 48h",
		Args:    one("mail address"),
	}
	cmd.Flags().StringVar(&r.Name, "name", "", "their name; by default it is taken from the address")
	cmd.Flags().StringSliceVar(&r.Roles, "role", []string{"viewer"}, "admin, editor, operator, approver or viewer; several with commas")
	life.addLifetimeFlag(cmd, 0, "how long it is good; by default seven days")
	return keeps(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.NewInvitation, error) {
		r.Email, r.ExpiresIn = args[0], life.seconds()
		return c.Invite(ctx, r)
	}, func(w *tabwriter.Writer, made api.NewInvitation) {
		link := made.URL
		if strings.HasPrefix(link, "/") {
			link = "SERVER" + link + "  (put the address of your server before it)"
		}
		fmt.Fprintf(w, "invitation %s for %s, good until %s; the link is shown this once:\n  %s\n", made.Invitation.ID,
			table.OneLine(made.Invitation.Email), table.Time(made.Invitation.ExpiresTime), link)
	})
}

func newUsersInvitations(at *connectFlags) *cobra.Command {
	var remove string
	cmd := &cobra.Command{
		Use: "invitations", Short: "List invitations, or take one back", Args: cobra.NoArgs,
		Example: "  tandem users invitations\n  tandem users invitations --remove inv_abc",
	}
	cmd.Flags().StringVar(&remove, "remove", "", "take back the invitation of this id first")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Invitations, error) {
		if remove != "" {
			if err := c.DeleteInvitation(ctx, remove); err != nil {
				return api.Invitations{}, err
			}
		}
		return c.Invitations(ctx)
	}, console.PrintInvitations)
}

// changeUser reads a user, changes something and keeps it.
func changeUser(ctx context.Context, c *client.Client, id string, change func(*api.UserRequest)) (api.User, error) {
	u, err := c.User(ctx, id)
	if err != nil {
		return u, err
	}
	r := api.UserRequest{Name: u.Name, Email: u.Email, Roles: u.Roles, Disabled: u.Disabled} // what is left out stays
	change(&r)
	return c.UpdateUser(ctx, id, r)
}

func newUsersRole(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "role ID ROLE...", Short: "Give a user these roles instead of those they have",
		Example: "  tandem users role ann editor approver",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("users role needs a user and at least one role, such as: tandem users role ann editor")
			}
			return nil
		},
	}
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.User, error) {
		return changeUser(ctx, c.Client, args[0], func(r *api.UserRequest) { r.Roles = args[1:] })
	}, console.PrintUser)
}

func newUsersEnable(at *connectFlags, on bool) *cobra.Command {
	use, short := "disable ID", "Keep a user from acting: their tokens, sessions and links are of no use from then on"
	if on {
		use, short = "enable ID", "Let a user act again who was disabled; their sessions have ended"
	}
	cmd := &cobra.Command{
		Use: use, Short: short, Args: one("user"),
	}
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		u, err := changeUser(ctx, c.Client, args[0], func(r *api.UserRequest) { r.Disabled = !on })
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("user %s is %s", u.ID, map[bool]string{true: "enabled", false: "disabled"}[!u.Disabled]), nil
	})
}

func newUsersRemove(at *connectFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove ID", Short: "Remove a user with their tokens and sessions; what they made stays", Args: one("user"),
	}
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		if err := c.DeleteUser(ctx, args[0]); err != nil {
			return "", err
		}
		return fmt.Sprintf("user %s is removed", table.OneLine(args[0])), nil
	})
}

func newTokens() *cobra.Command {
	var at connectFlags
	cmd := &cobra.Command{
		Use: "tokens", Aliases: []string{"token"}, Short: "Keep API tokens: list, create, revoke",
		Long: `A token is what a program or a person shows to act as a user. Its secret is shown once, when it is made. Scopes narrow
what it may be used for: read, execute, answer, edit, admin (everything); they never give more than the
user's roles do.`,
		RunE: func(cmd *cobra.Command, args []string) error { return subcommand(cmd, args) },
	}
	at.addConnectFlags(cmd)
	cmd.AddCommand(newTokensList(&at), newTokensCreate(&at), newTokensRevoke(&at))
	return cmd
}

func newTokensList(at *connectFlags) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use: "list", Short: "List tokens, without their secrets", Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&user, "user", "me", "whose")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, _ []string) (api.Tokens, error) {
		return c.Tokens(ctx, user)
	}, console.PrintTokens)
}

func newTokensCreate(at *connectFlags) *cobra.Command {
	var user string
	var r api.TokenRequest
	life := lifetime{example: "720h"}
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a token and show its secret this once",
		Example: "  tandem tokens create ci --scope read,execute --expires 720h\n  tandem tokens create laptop --user ann",
		Args:    one("name"),
	}
	cmd.Flags().StringVar(&user, "user", "me", "whose; for another than oneself one has to be an admin")
	cmd.Flags().StringSliceVar(&r.Scopes, "scope", nil, "read, execute, answer, edit or admin; several with commas; by default whatever the user may do")
	life.addLifetimeFlag(cmd, 0, "how long it is good; by default for ever")
	return shows(at, cmd, func(ctx context.Context, c *app.Connection, args []string) (api.NewToken, error) {
		r.Name, r.ExpiresIn = args[0], life.seconds()
		return c.CreateToken(ctx, user, r)
	}, printToken)
}

func printToken(w *tabwriter.Writer, made api.NewToken) {
	fmt.Fprintf(w, "token %s of the user %s, shown this once:\n  %s\n", made.Token.ID, table.OneLine(made.Token.UserID), made.Secret)
}

func newTokensRevoke(at *connectFlags) *cobra.Command {
	var user string
	cmd := &cobra.Command{
		Use: "revoke TOKEN", Short: "Take a token out of use, by its id", Args: one("token"),
	}
	cmd.Flags().StringVar(&user, "user", "me", "whose")
	return says(at, cmd, false, func(ctx context.Context, c *app.Connection, args []string) (string, error) {
		if err := c.DeleteToken(ctx, user, args[0]); err != nil {
			return "", err
		}
		return fmt.Sprintf("token %s is of no use any more", table.OneLine(args[0])), nil
	})
}

func newAdminToken() *cobra.Command {
	var at connectFlags
	var show listing
	life := lifetime{example: "24h"}
	var workspace string
	cmd := &cobra.Command{
		Use: "token", Short: "Make a token for the user admin, on the machine of the data directory",
		Long: `Token is the way back in when every token is lost: whoever may open the data directory (--data, TANDEM_DATA) gets a
token of the user admin, who is made, enabled and made an admin if need be. A server may be running on the
directory or not. It is entered in the audit log, with the account of the operating system. With --workspace it is the
user admin of that workspace.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at.server = "" // the machine is what counts, whatever TANDEM_SERVER says
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				if workspace != "" {
					made, err := c.CreateWorkspaceToken(ctx, workspace, api.WorkspaceTokenRequest{ExpiresIn: life.seconds()})
					if err != nil {
						return err
					}
					return show.Show(cmd.OutOrStdout(), made, func(w *tabwriter.Writer) { console.PrintNewWorkspace(w, made) })
				}
				made, err := adminToken(ctx, c.Client, api.TokenRequest{Name: "recovery", ExpiresIn: life.seconds()})
				if err != nil {
					return err
				}
				return show.Show(cmd.OutOrStdout(), made, func(w *tabwriter.Writer) { printToken(w, made) })
			})
		},
	}
	at.addData(cmd)
	show.addListingFlags(cmd, false)
	life.addLifetimeFlag(cmd, 24*time.Hour, "how long it is good; 0 for ever")
	cmd.Flags().StringVar(&workspace, "workspace", "", "of which workspace; by default the first one")
	return cmd
}

func newAdminLink() *cobra.Command {
	var at connectFlags
	var show listing
	var url string
	cmd := &cobra.Command{
		Use: "link", Short: "Make a link that logs a browser in as the user admin, once",
		Long: `Link makes a login link for the user admin, who is made, enabled and made an admin if need be. It is good for one
login within an hour. Whoever may open the data directory (--data, TANDEM_DATA) gets one, with a server running on it or
not. It is entered in the audit log, with the account of the operating system.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			at.server = ""
			return at.with(cmd, false, func(ctx context.Context, c *app.Connection) error {
				made, err := adminToken(ctx, c.Client, api.TokenRequest{Name: "login link", Scopes: []string{string(identity.ScopeLogin)}})
				if err != nil {
					return err
				}
				link := strings.TrimSuffix(url, "/") + "/login#code=" + made.Secret
				return show.Show(cmd.OutOrStdout(), map[string]any{"url": link, "expires_time": made.Token.ExpiresTime},
					func(w *tabwriter.Writer) { fmt.Fprintln(w, link) })
			})
		},
	}
	at.addData(cmd)
	show.addListingFlags(cmd, false)
	cmd.Flags().StringVar(&url, "url", cmp.Or(os.Getenv("TANDEM_PUBLIC_URL"), "http://127.0.0.1:8080"), "where the server is reached (TANDEM_PUBLIC_URL)")
	return cmd
}

// lifetime is how long something is good that is made for somebody.
type lifetime struct {
	given time.Duration
	// example is how it may be written.
	example string
}

// addLifetimeFlag adds the flag, which is checked before the command does anything.
func (l *lifetime) addLifetimeFlag(cmd *cobra.Command, usual time.Duration, help string) {
	cmd.Flags().DurationVar(&l.given, "expires", usual, help)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if l.given < 0 || l.given > 0 && l.given < time.Second {
			return console.Usage(fmt.Errorf("--expires %s is too short; write it as %s", l.given, l.example))
		}
		return nil
	}
}

func (l *lifetime) seconds() int64 { return int64(l.given / time.Second) }

// firstAdmin is the user that a new installation has.
const firstAdmin = "admin"

// adminToken makes a token of the first admin, after it has made sure that there is one.
func adminToken(ctx context.Context, c *client.Client, r api.TokenRequest) (api.NewToken, error) {
	u, err := c.User(ctx, firstAdmin)
	switch {
	case fault.CodeOf(err) == fault.NotFound:
		_, err = c.CreateUser(ctx, api.UserRequest{ID: firstAdmin, Name: "Admin", Roles: []string{"admin"}})
	case err == nil && (u.Disabled || !slices.Contains(u.Roles, "admin")):
		_, err = changeUser(ctx, c, firstAdmin, func(r *api.UserRequest) {
			r.Disabled = false
			if !slices.Contains(r.Roles, "admin") {
				r.Roles = append(r.Roles, "admin")
			}
		})
	}
	if err != nil {
		return api.NewToken{}, err
	}
	return c.CreateToken(ctx, firstAdmin, r)
}
