package database

import (
	"context"

	"tandem/credential"
	"tandem/fault"
	"tandem/text"
)

// Credential is the type of the credentials that databases are connected to with.
func Credential() credential.Type {
	return credential.Type{Name: "sql", Label: text.Beside("Database", "数据库"), Fields: []credential.Field{
		credential.Choice("driver", "Driver", "驱动", string(postgresDialect), string(mysqlDialect), string(sqliteDialect)).Needed(),
		credential.Secret("dsn", "Data source name", "连接字符串").Needed(),
		credential.Address("base_url", "Base URL", "接口地址").Schemed("http", "https", "tcp"),
	}, Check: check}
}

// check connects, logs in and reads the number one. A file of SQLite belongs to a workspace, which a check is not told.
func check(ctx context.Context, c credential.Opened, out credential.Outside) (string, error) {
	var fields struct {
		Driver string `json:"driver"`
	}
	if err := c.Read(&fields); err != nil {
		return "", err
	}
	if fields.Driver == string(sqliteDialect) {
		return "", fault.New(fault.Unsupported, "a file of SQLite needs no login; whether it is there is seen when a node opens it")
	}
	pools := New(Options{Dial: out.Dial, Pools: 1, Connections: 1})
	defer pools.Close()
	if _, err := pools.Query(ctx, Target{Workspace: "check", Credential: c.ID, Data: c.Data},
		Query{Text: Text{Words: []string{"SELECT 1"}}, MaxRows: 1}); err != nil {
		return "", err
	}
	return "connected and logged in to the database (" + fields.Driver + ")", nil
}
