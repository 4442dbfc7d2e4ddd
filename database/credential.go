package database

import (
	"tandem/credential"
	"tandem/text"
)

// Credential is the type of the credentials that databases are connected to with.
func Credential() credential.Type {
	return credential.Type{Name: "sql", Label: text.Beside("Database", "数据库"), Fields: []credential.Field{
		credential.Choice("driver", "Driver", "驱动", string(postgresDialect), string(mysqlDialect), string(sqliteDialect)).Needed(),
		credential.Secret("dsn", "Data source name", "连接字符串").Needed(),
		credential.Address("base_url", "Base URL", "接口地址").Schemed("http", "https", "tcp"),
	}}
}
