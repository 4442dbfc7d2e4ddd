package n8n

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"tandem/importer"
	"tandem/text"
)

// service is a service that is called over HTTP, because it has no kind of its own.
type service struct {
	base string
	// first is the operation of a node that names none.
	first string
	// calls are its operations: "resource.operation" or "operation", each with a line such as
	//
	//	GET /v0/{base}/{table} ?view=options.view |name=title #records
	//
	// that has the method, the path with parameters of the node in braces, parameters of the query, fields of the body, and where the
	// answer has its items.
	calls map[string]string
}

// sheets and other bases of Google.
const google = "https://www.googleapis.com"

// services are those that are called over HTTP.
func services() map[string]service {
	return map[string]service{
		"airtable": {"https://api.airtable.com", "get", map[string]string{
			"list": "GET /v0/{application}/{table} #records", "search": "GET /v0/{base}/{table} ?filterByFormula=filterByFormula&maxRecords=limit #records",
			"read": "GET /v0/{application}/{table}/{id}", "get": "GET /v0/{base}/{table}/{id}",
			"append": "POST /v0/{application}/{table} |fields=$json", "create": "POST /v0/{base}/{table} |fields=columns.value",
			"update": "PATCH /v0/{base|application}/{table}/{id} |fields=columns.value", "upsert": "PATCH /v0/{base}/{table} |fields=columns.value", "delete": "DELETE /v0/{base|application}/{table}/{id}",
			"deleteRecord": "DELETE /v0/{base}/{table}/{id}", "base.get": "GET /v0/meta/bases #bases",
			"base.getMany": "GET /v0/meta/bases #bases", "base.getSchema": "GET /v0/meta/bases/{base}/tables #tables",
		}},
		"googleSheets": {"https://sheets.googleapis.com", "read", map[string]string{
			"read": "GET /v4/spreadsheets/{documentId|sheetId}/values/{sheetName|range} #values", "lookup": "GET /v4/spreadsheets/{documentId|sheetId}/values/{sheetName|range} #values",
			"append":         "POST /v4/spreadsheets/{documentId|sheetId}/values/{sheetName|range}:append ?valueInputOption==USER_ENTERED |values=$row",
			"appendOrUpdate": "POST /v4/spreadsheets/{documentId|sheetId}/values/{sheetName|range}:append ?valueInputOption==USER_ENTERED |values=$row",
			"update":         "PUT /v4/spreadsheets/{documentId|sheetId}/values/{sheetName|range} ?valueInputOption==USER_ENTERED |values=$row",
			"clear":          "POST /v4/spreadsheets/{documentId|sheetId}/values/{sheetName|range}:clear", "spreadsheet.create": "POST /v4/spreadsheets |properties.title=title", "create": "POST /v4/spreadsheets/{documentId}:batchUpdate |requests=$addSheet",
		}},
		"googleDrive": {google, "upload", map[string]string{
			"download": "GET /drive/v3/files/{fileId} ?alt==media !file", "list": "GET /drive/v3/files ?q=queryString&pageSize=limit #files", "fileFolder.search": "GET /drive/v3/files ?q=queryString&pageSize=limit #files",
			"fileFolder.": "GET /drive/v3/files ?q=queryString&pageSize=limit #files", "copy": "POST /drive/v3/files/{fileId}/copy |name=name", "update": "PATCH /drive/v3/files/{fileId} |name=newUpdatedFileName",
			"delete": "DELETE /drive/v3/files/{fileId}", "deleteFile": "DELETE /drive/v3/files/{fileId}", "share": "POST /drive/v3/files/{fileId}/permissions |role=permissionsUi.permissionsValues.role&type=permissionsUi.permissionsValues.type",
			"move": "PATCH /drive/v3/files/{fileId} ?addParents=folderId", "folder.create": "POST /drive/v3/files |name=name&mimeType==application/vnd.google-apps.folder", "folder.": "POST /drive/v3/files |name=name&mimeType==application/vnd.google-apps.folder",
			"folder.deleteFolder": "DELETE /drive/v3/files/{folderNoRootId}", "createFromText": "POST /drive/v3/files |name=name",
		}},
		"googleDocs": {"https://docs.googleapis.com", "create", map[string]string{
			"get": "GET /v1/documents/{documentURL}", "create": "POST /v1/documents |title=title", "update": "POST /v1/documents/{documentURL}:batchUpdate |requests=$actions",
		}},
		"googleCalendar": {google, "create", map[string]string{
			"getAll": "GET /calendar/v3/calendars/{calendar}/events ?timeMin=timeMin&timeMax=timeMax&maxResults=limit&singleEvents==true #items", "get": "GET /calendar/v3/calendars/{calendar}/events/{eventId}",
			"create": "POST /calendar/v3/calendars/{calendar}/events |start.dateTime=start&end.dateTime=end&summary=additionalFields.summary&description=additionalFields.description&location=additionalFields.location",
			"delete": "DELETE /calendar/v3/calendars/{calendar}/events/{eventId}", "update": "PATCH /calendar/v3/calendars/{calendar}/events/{eventId} |start.dateTime=updateFields.start&end.dateTime=updateFields.end&summary=updateFields.summary",
			"calendar.availability": "POST /calendar/v3/freeBusy |timeMin=timeMin&timeMax=timeMax",
		}},
		"gmail": {"https://gmail.googleapis.com", "message.send", map[string]string{
			"message.getAll": "GET /gmail/v1/users/me/messages ?q=filters.q&maxResults=limit #messages", "message.get": "GET /gmail/v1/users/me/messages/{messageId}", "message.delete": "DELETE /gmail/v1/users/me/messages/{messageId}",
			"message.addLabels": "POST /gmail/v1/users/me/messages/{messageId}/modify |addLabelIds=labelIds", "message.removeLabels": "POST /gmail/v1/users/me/messages/{messageId}/modify |removeLabelIds=labelIds",
			"message.markAsRead": "POST /gmail/v1/users/me/messages/{messageId}/modify |removeLabelIds=$unread", "getAll": "GET /gmail/v1/users/me/messages ?q=filters.q&maxResults=limit #messages", "get": "GET /gmail/v1/users/me/messages/{messageId}",
			"label.getAll": "GET /gmail/v1/users/me/labels #labels", "thread.get": "GET /gmail/v1/users/me/threads/{threadId}", "thread.getAll": "GET /gmail/v1/users/me/threads ?maxResults=limit #threads",
		}},
		"notion": {"https://api.notion.com", "get", map[string]string{
			"database.get": "GET /v1/databases/{databaseId}", "database.getAll": "POST /v1/search #results", "database.search": "POST /v1/search |query=text #results", "databasePage.create": "POST /v1/pages |parent.database_id=databaseId&properties.Name.title.0.text.content=title",
			"databasePage.getAll": "POST /v1/databases/{databaseId}/query |filter=filterJson #results", "databasePage.get": "GET /v1/pages/{pageId}", "databasePage.update": "PATCH /v1/pages/{pageId} |properties=$properties",
			"databasePage.": "POST /v1/pages |parent.database_id=databaseId&properties.Name.title.0.text.content=title", "page.create": "POST /v1/pages |parent.page_id=pageId&properties.title.0.text.content=title", "page.": "POST /v1/pages |parent.page_id=pageId&properties.title.0.text.content=title",
			"page.archive": "PATCH /v1/pages/{pageId} |archived==true", "archive": "PATCH /v1/pages/{pageId} |archived==true",
			"page.get": "GET /v1/pages/{pageId}", "page.search": "POST /v1/search |query=text #results",
			"user.getAll": "GET /v1/users #results", "user.get": "GET /v1/users/{userId}",
			"block.getAll": "GET /v1/blocks/{blockId}/children #results", "block.append": "PATCH /v1/blocks/{blockId}/children |children=$blocks", "block.": "PATCH /v1/blocks/{blockId}/children |children=$blocks",
		}},
		"github": {"https://api.github.com", "issue.create", map[string]string{
			"issue.create": "POST /repos/{owner}/{repository}/issues |title=title&body=body", "issue.": "POST /repos/{owner}/{repository}/issues |title=title&body=body", "issue.get": "GET /repos/{owner}/{repository}/issues/{issueNumber}",
			"issue.createComment": "POST /repos/{owner}/{repository}/issues/{issueNumber}/comments |body=body", "issue.edit": "PATCH /repos/{owner}/{repository}/issues/{issueNumber} |title=editFields.title&body=editFields.body&state=editFields.state",
			"issue.lock": "PUT /repos/{owner}/{repository}/issues/{issueNumber}/lock", "file.get": "GET /repos/{owner}/{repository}/contents/{filePath}", "file.list": "GET /repos/{owner}/{repository}/contents/{filePath} #", "file.delete": "DELETE /repos/{owner}/{repository}/contents/{filePath} |message=commitMessage",
			"file.create": "PUT /repos/{owner}/{repository}/contents/{filePath} |message=commitMessage&content=$base64", "file.": "PUT /repos/{owner}/{repository}/contents/{filePath} |message=commitMessage&content=$base64", "file.edit": "PUT /repos/{owner}/{repository}/contents/{filePath} |message=commitMessage&content=$base64",
			"release.create": "POST /repos/{owner}/{repository}/releases |tag_name=releaseTag", "release.getAll": "GET /repos/{owner}/{repository}/releases #", "repository.get": "GET /repos/{owner}/{repository}", "repository.getIssues": "GET /repos/{owner}/{repository}/issues #",
			"user.getRepositories": "GET /users/{owner}/repos #", "review.getAll": "GET /repos/{owner}/{repository}/pulls/{pullRequestNumber}/reviews #",
		}},
		"hubspot": {"https://api.hubapi.com", "contact.upsert", map[string]string{
			"contact.upsert": "POST /crm/v3/objects/contacts |properties.email=email", "contact.": "POST /crm/v3/objects/contacts |properties.email=email", "contact.get": "GET /crm/v3/objects/contacts/{contactId}", "contact.getAll": "GET /crm/v3/objects/contacts ?limit=limit #results",
			"company.getAll": "GET /crm/v3/objects/companies ?limit=limit #results", "company.create": "POST /crm/v3/objects/companies |properties.name=name", "deal.create": "POST /crm/v3/objects/deals |properties.dealstage=stage", "deal.getAll": "GET /crm/v3/objects/deals ?limit=limit #results",
		}},
		"stripe": {"https://api.stripe.com", "balance.get", map[string]string{
			"customer.get": "GET /v1/customers/{customerId}", "customer.": "GET /v1/customers/{customerId}",
			"customer.getAll": "GET /v1/customers ?limit=limit #data", "charge.get": "GET /v1/charges/{chargeId}",
			"charge.getAll": "GET /v1/charges ?limit=limit #data", "balance.get": "GET /v1/balance", "balance.": "GET /v1/balance",
		}},
		"spotify": {"https://api.spotify.com", "player.addSongToQueue", map[string]string{
			"playlist.getUserPlaylists": "GET /v1/me/playlists #items", "playlist.getTracks": "GET /v1/playlists/{id}/tracks #items",
			"playlist.add": "POST /v1/playlists/{id}/tracks ?uris=trackID", "playlist.": "POST /v1/playlists/{id}/tracks ?uris=trackID",
			"library.getLikedTracks": "GET /v1/me/tracks ?limit=limit #items", "library.": "GET /v1/me/tracks ?limit=limit #items",
			"track.get": "GET /v1/tracks/{id}", "artist.get": "GET /v1/artists/{id}",
			"playlist.create": "POST /v1/me/playlists |name=name", "search.": "GET /v1/search ?q=query",
		}},
		"whatsApp": {"https://graph.facebook.com", "message.send", map[string]string{
			"send": "POST /v20.0/{phoneNumberId}/messages |messaging_product==whatsapp&to=recipientPhoneNumber&type==text&text.body=textBody", "message.send": "POST /v20.0/{phoneNumberId}/messages |messaging_product==whatsapp&to=recipientPhoneNumber&type==text&text.body=textBody",
		}},
		"microsoftOutlook": {"https://graph.microsoft.com", "message.send", map[string]string{
			"message.send": "POST /v1.0/me/sendMail |message.subject=subject&message.body.contentType==HTML&message.body.content=bodyContent&message.toRecipients=$recipients", "send": "POST /v1.0/me/sendMail |message.subject=subject&message.body.contentType==HTML&message.body.content=bodyContent&message.toRecipients=$recipients",
			"message.getAll": "GET /v1.0/me/messages ?$top=limit #value", "message.get": "GET /v1.0/me/messages/{messageId}", "message.delete": "DELETE /v1.0/me/messages/{messageId}", "message.": "POST /v1.0/me/sendMail |message.subject=subject&message.body.contentType==HTML&message.body.content=bodyContent&message.toRecipients=$recipients",
		}},
		"todoist": {"https://api.todoist.com", "create", map[string]string{
			"create": "POST /rest/v2/tasks |content=content", "getAll": "GET /rest/v2/tasks #", "get": "GET /rest/v2/tasks/{taskId}", "close": "POST /rest/v2/tasks/{taskId}/close", "delete": "DELETE /rest/v2/tasks/{taskId}", "update": "POST /rest/v2/tasks/{taskId} |content=updateFields.content",
		}},
		"openAi": {"https://api.openai.com", "", map[string]string{"image.create": "POST /v1/images/generations |prompt=prompt #data"}},
		"clickUp": {"https://api.clickup.com", "task.create", map[string]string{
			"task.create": "POST /api/v2/list/{list}/task |name=name", "task.": "POST /api/v2/list/{list}/task |name=name",
			"task.get": "GET /api/v2/task/{id}", "task.getAll": "GET /api/v2/list/{list}/task #tasks",
			"task.update": "PUT /api/v2/task/{id} |name=updateFields.name", "task.delete": "DELETE /api/v2/task/{id}",
		}},
		"asana":  {"https://app.asana.com", "task.create", map[string]string{"task.create": "POST /api/1.0/tasks |data.name=name&data.workspace=workspace", "task.": "POST /api/1.0/tasks |data.name=name&data.workspace=workspace", "task.get": "GET /api/1.0/tasks/{id}", "task.getAll": "GET /api/1.0/tasks ?project=filters.project #data"}},
		"trello": {"https://api.trello.com", "card.create", map[string]string{"card.get": "GET /1/cards/{id}", "card.create": "POST /1/cards |idList=listId&name=name&desc=description", "card.": "POST /1/cards |idList=listId&name=name&desc=description", "list.getCards": "GET /1/lists/{id}/cards #"}},
		"sendGrid": {"https://api.sendgrid.com", "mail.send", map[string]string{
			"mail.send": "POST /v3/mail/send |personalizations.0.to.0.email=toEmail&from.email=fromEmail&subject=subject&content.0.type==text/html&content.0.value=contentValue",
		}},
		"pipedrive": {"https://api.pipedrive.com", "deal.create", map[string]string{"deal.create": "POST /v1/deals |title=title", "deal.getAll": "GET /v1/deals ?limit=limit #data", "person.create": "POST /v1/persons |name=name", "person.getAll": "GET /v1/persons ?limit=limit #data"}},
		"bannerbear": {"https://api.bannerbear.com", "image.create", map[string]string{
			"image.create": "POST /v2/images |template=templateId&modifications=modificationsUi.modificationsValues", "image.": "POST /v2/images |template=templateId&modifications=modificationsUi.modificationsValues", "image.get": "GET /v2/images/{imageId}", "template.get": "GET /v2/templates/{templateId}", "template.getAll": "GET /v2/templates #",
		}},
		"mailchimp": {"https://us1.api.mailchimp.com", "member.create", map[string]string{"member.create": "POST /3.0/lists/{list}/members |email_address=email&status=status", "member.": "POST /3.0/lists/{list}/members |email_address=email&status=status"}},
		"coinGecko": {"https://api.coingecko.com", "coin.getAll", map[string]string{"coin.price": "GET /api/v3/simple/price ?ids=quoteCurrencies", "coin.getAll": "GET /api/v3/coins/list #"}},
		"hackerNews": {"https://hn.algolia.com", "all.getAll", map[string]string{
			"all.getAll": "GET /api/v1/search ?query=additionalFields.keyword&hitsPerPage=limit #hits", "all.": "GET /api/v1/search ?query=additionalFields.keyword&hitsPerPage=limit #hits", "article.get": "GET /api/v1/items/{articleId}", "article.": "GET /api/v1/items/{articleId}", "user.get": "GET /api/v1/users/{username}",
		}},
		"youTube":        {google, "channel.getAll", map[string]string{"video.getAll": "GET /youtube/v3/search ?part==snippet&q=filters.q&channelId=filters.channelId&maxResults=limit #items", "video.get": "GET /youtube/v3/videos ?part==snippet,contentDetails,statistics&id=videoId #items", "channel.get": "GET /youtube/v3/channels ?part==snippet,contentDetails,statistics&id=channelId #items", "playlistItem.getAll": "GET /youtube/v3/playlistItems ?part==snippet&playlistId=playlistId&maxResults=limit #items"}},
		"openWeatherMap": {"https://api.openweathermap.org", "currentWeather", map[string]string{"currentWeather": "GET /data/2.5/weather ?q=cityName&units=format", "5DayForecast": "GET /data/2.5/forecast ?q=cityName&units=format #list"}},
		"twitter":        {"https://api.twitter.com", "tweet.create", map[string]string{"tweet.create": "POST /2/tweets |text=text", "create": "POST /2/tweets |text=text", "tweet.": "POST /2/tweets |text=text", "tweet.search": "GET /2/tweets/search/recent ?query=searchText #data", "tweet.delete": "DELETE /2/tweets/{tweetDeleteId}", "user.searchUser": "GET /2/users/by/username/{user}"}},
		"vonage":         {"https://rest.nexmo.com", "sms.send", map[string]string{"sms.send": "POST /sms/json |from=from&to=to&text=message", "sms.": "POST /sms/json |from=from&to=to&text=message"}},
		"n8n": {"{{env.N8N_URL}}", "workflow.getAll", map[string]string{ // the API of an n8n that goes on running
			"workflow.getAll": "GET /api/v1/workflows ?limit=limit #data", "workflow.": "GET /api/v1/workflows ?limit=limit #data",
			"workflow.get": "GET /api/v1/workflows/{workflowId}", "workflow.activate": "POST /api/v1/workflows/{workflowId}/activate",
			"workflow.deactivate": "POST /api/v1/workflows/{workflowId}/deactivate",
			"workflow.delete":     "DELETE /api/v1/workflows/{workflowId}", "execution.getAll": "GET /api/v1/executions ?limit=limit #data",
			"execution.get":    "GET /api/v1/executions/{executionId}",
			"execution.delete": "DELETE /api/v1/executions/{executionId}", "credential.delete": "DELETE /api/v1/credentials/{credentialId}",
		}},
		"nasa": {"https://api.nasa.gov", "astronomyPictureOfTheDay.get", map[string]string{"astronomyPictureOfTheDay.get": "GET /planetary/apod", "astronomyPictureOfTheDay.": "GET /planetary/apod"}},
	}
}

// callOf is the line of the table for a node.
func callOf(n *node) (service, string, bool) {
	s, ok := services()[short(n.typ)]
	if !ok {
		return s, "", false
	}
	resource, operation := n.text("resource"), n.text("operation")
	names := []string{operation}
	if resource != "" {
		names = []string{resource + "." + operation, operation}
	} else if operation == "" {
		names = []string{s.first}
	} else if first, _, ok := strings.Cut(s.first, "."); ok {
		names = append(names, first+"."+operation)
	}
	for _, name := range names {
		if line := s.calls[name]; line != "" {
			return s, line, true
		}
	}
	return s, "", false
}

// hole is a parameter in a path. read-only
var hole = regexp.MustCompile(`\{([^}]+)\}`)

// rest writes a call of a service.
func rest(m *making) {
	s, line, ok := callOf(m.n)
	if !ok {
		m.missing(text.Of("the operation %q of %s has no counterpart",
			strings.Trim(m.n.text("resource")+" "+m.n.text("operation"), " "), short(m.n.typ)))
		return
	}
	parts := strings.Fields(line)
	m.kind, m.cfg["method"], m.cfg["body_type"] = "ACTION.HTTP_REQUEST", parts[0], "none"
	if parts[0] != "GET" && parts[0] != "DELETE" {
		m.cfg["body_type"] = "json"
	}
	m.cfg["url"] = s.base + hole.ReplaceAllStringFunc(parts[1], func(name string) string {
		for _, one := range strings.Split(strings.Trim(name, "{}"), "|") {
			if words := m.identifier(one); words != "" {
				return words
			}
		}
		m.line.Approximate(text.Of("the parameter %q is not set; write it into the address", strings.Trim(name, "{}")))
		return "-"
	})
	body := map[string]any{}
	for _, part := range parts[2:] {
		switch part[0] {
		case '?':
			query := map[string]any{}
			m.each(part[1:], func(name string, value any) { query[name] = value })
			m.object("query_params", query)
		case '|':
			m.each(part[1:], func(name string, value any) { deep(body, strings.Split(name, "."), value) })
		case '!':
			m.cfg["response_type"] = part[1:]
		}
	}
	if len(body) > 0 {
		m.cfg["body"] = lists(body)
	}
	if short(m.n.typ) == "notion" {
		m.cfg["headers"] = map[string]any{"Notion-Version": "2022-06-28"}
	}
	m.auth("http_auth")
	if m.cfg["credential_id"] == nil {
		m.cfg["credential_id"] = "{{$placeholder}}"
	}
	m.line.Approximate(text.Of("it calls the service over HTTP: the answer is that of the service, of a list its first page, and options of the node may be left out"))
}

// each are the parameters of a part of a line, those that are set.
func (m *making) each(pairs string, set func(name string, value any)) {
	for _, pair := range strings.Split(pairs, "&") {
		name, from, _ := strings.Cut(pair, "=")
		switch constant, fixed := strings.CutPrefix(from, "="); {
		case fixed:
			set(name, map[string]any{"true": true}[constant])
			if constant != "true" {
				set(name, constant)
			}
		case strings.HasPrefix(from, "$"):
			if v := m.special(from); v != nil {
				set(name, v)
			}
		default:
			v := m.n.params.At(strings.Split(from, ".")...)
			if !v.Exists() || v.Text() == "" && !v.IsObject() && !v.IsList() {
				continue
			}
			set(name, m.value(locator(v)))
		}
	}
}

// special are the fields that are made of several parameters.
func (m *making) special(name string) any {
	p := m.n.params
	switch name {
	case "$json":
		return m.json.whole()
	case "$row":
		row := []any{}
		for _, column := range p.At("columns", "schema").List() {
			if v := p.At("columns", "value", column.At("id").Text()); v.Exists() {
				row = append(row, m.value(v))
			}
		}
		if len(row) == 0 {
			for _, field := range slices.Concat(p.At("fieldsUi", "fieldValues").List(), p.At("fieldsUi", "values").List()) {
				row = append(row, m.value(field.First("fieldValue")))
			}
		}
		if len(row) == 0 {
			m.line.Approximate(text.Of("which fields go into which columns has to be said: write the row into body.values"))
		}
		return []any{row}
	case "$recipients":
		var list []any
		for _, one := range strings.Split(m.text(p.At("toRecipients")), ",") {
			list = append(list, map[string]any{"emailAddress": map[string]any{"address": strings.TrimSpace(one)}})
		}
		return list
	case "$properties":
		return m.properties()
	case "$unread":
		return []any{"UNREAD"}
	case "$base64":
		m.line.Approximate(text.Of("the content of the file has to be in Base64"))
		return m.text(p.At("fileContent"))
	case "$addSheet":
		return []any{map[string]any{"addSheet": map[string]any{"properties": map[string]any{"title": m.text(p.At("title"))}}}}
	case "$actions":
		var list []any
		for _, a := range p.At("actionsUi", "actionFields").List() {
			if a.At("action").Text() == "replaceAll" {
				list = append(list, map[string]any{"replaceAllText": map[string]any{"containsText": map[string]any{"text": m.text(a.At("text"))}, "replaceText": m.text(a.At("replaceText"))}})
			} else {
				list = append(list, map[string]any{"insertText": map[string]any{"endOfSegmentLocation": map[string]any{},
					"text": m.text(a.At("text"))}})
			}
		}
		return list
	case "$blocks":
		var list []any
		for _, b := range p.At("blockUi", "blockValues").List() {
			list = append(list, map[string]any{"paragraph": map[string]any{"rich_text": []any{map[string]any{"text": map[string]any{"content": m.text(b.First("textContent", "content"))}}}}})
		}
		return list
	}
	return nil
}

// properties are those of a page of Notion, by the forms that they have there.
func (m *making) properties() map[string]any {
	out := map[string]any{}
	for _, v := range m.n.params.At("propertiesUi", "propertyValues").List() {
		name, typ, _ := strings.Cut(v.At("key").Text(), "|")
		words := func(field string) any {
			return []any{map[string]any{"text": map[string]any{"content": m.text(v.At(field))}}}
		}
		switch {
		case name == "":
		case typ == "title" || v.At("title").Exists():
			out[name] = map[string]any{"title": words("title")}
		case typ == "number" || v.At("numberValue").Exists():
			out[name] = map[string]any{"number": m.of(v.At("numberValue"), "number")}
		case typ == "url" || v.At("urlValue").Exists():
			out[name] = map[string]any{"url": m.text(v.At("urlValue"))}
		case typ == "email" || v.At("emailValue").Exists():
			out[name] = map[string]any{"email": m.text(v.At("emailValue"))}
		case typ == "checkbox" || v.At("checkboxValue").Exists():
			out[name] = map[string]any{"checkbox": m.value(v.At("checkboxValue"))}
		case typ == "select" || v.At("selectValue").Exists():
			out[name] = map[string]any{"select": map[string]any{"name": m.text(v.At("selectValue"))}}
		case typ == "status" || v.At("statusValue").Exists():
			out[name] = map[string]any{"status": map[string]any{"name": m.text(v.At("statusValue"))}}
		case typ == "date" || v.At("date").Exists():
			out[name] = map[string]any{"date": map[string]any{"start": m.text(v.First("date", "dateStart"))}}
		default:
			out[name] = map[string]any{"rich_text": words("textContent")}
		}
	}
	return out
}

// identifier is a parameter that stands in a path: an id, also out of an address.
func (m *making) identifier(name string) string {
	v := m.n.params.At(name)
	words := m.text(v)
	if found := linked.FindStringSubmatch(words); found != nil {
		return found[1]
	}
	if strings.Contains(words, "://") {
		m.line.Approximate(text.Of("the parameter %q is an address, of which the service wants the id", name))
	}
	if v.At("mode").Text() == "list" && v.At("cachedResultName").Text() != "" && (name == "sheetName" || name == "range") {
		words = v.At("cachedResultName").Text()
	}
	return strings.ReplaceAll(words, " ", "%20")
}

// linked is an address of a document that has its id. read-only
var linked = regexp.MustCompile(`^https?://[^/]*(?:google|airtable|notion)[^/]*/(?:.*?/)?(?:d/|folders/|app)?([A-Za-z0-9_-]{15,})(?:[/?#].*)?$`)

// deep sets a field below others; numbers are places in lists.
func deep(to map[string]any, path []string, value any) {
	for len(path) > 1 {
		inner, ok := to[path[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			to[path[0]] = inner
		}
		to, path = inner, path[1:]
	}
	to[path[0]] = value
}

// lists makes lists of objects whose only field is 0.
func lists(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	for name := range object {
		object[name] = lists(object[name])
	}
	if only, ok := object["0"]; ok && len(object) == 1 {
		return []any{only}
	}
	return object
}

// restHandler is how a call of a service is imported.
func restHandler(n *node) handler {
	h := handler{per: true, path: []string{"json"}, make: rest}
	_, line, ok := callOf(n)
	if !ok {
		return h
	}
	if at := strings.Index(line, " #"); at >= 0 {
		h.many, h.per = true, false
		h.path = []string{"json"}
		if items := strings.Fields(line[at+2:]); len(items) > 0 {
			h.path = append(h.path, items[0])
		}
		h.make = func(m *making) {
			if m.up.many {
				m.json.path, m.json.many = append(slices.Clone(m.up.path), "0"), false
				m.line.Approximate(text.Of("it runs once, with the first item"))
			}
			rest(m)
		}
	}
	return h
}

// vendor is a kind of ours for a service.
type vendor struct {
	kind, credential string
	// write sets the configurations; false: the operation has no counterpart there.
	write func(m *making) bool
}

// vendors are the kinds for services, where this program has them.
func vendors() map[string]vendor {
	return map[string]vendor{
		"slack":            {"EXTERNAL_ACTION.SLACK", "slack_bot", slack},
		"telegram":         {"EXTERNAL_ACTION.TELEGRAM_ACTION", "telegram_bot", telegram},
		"discord":          {"EXTERNAL_ACTION.DISCORD_ACTION", "discord_bot", discord},
		"emailSend":        {"EXTERNAL_ACTION.EMAIL", "smtp", mail},
		"gmail":            {"EXTERNAL_ACTION.EMAIL", "smtp", gmail},
		"github":           {"EXTERNAL_ACTION.GITHUB", "github_token", github},
		"gitlab":           {"EXTERNAL_ACTION.GITLAB_ACTION", "gitlab_token", gitlab},
		"jira":             {"EXTERNAL_ACTION.JIRA_ACTION", "jira", jira},
		"trello":           {"EXTERNAL_ACTION.TRELLO", "trello", trello},
		"notion":           {"EXTERNAL_ACTION.NOTION", "notion", notion},
		"microsoftOutlook": {"EXTERNAL_ACTION.EMAIL", "smtp", outlook},
	}
}

// vendorMake writes a node of a vendor's kind, or calls the service over HTTP.
func vendorMake(v vendor) func(m *making) {
	return func(m *making) {
		if !m.f.Has(v.kind) {
			m.otherwise(v.kind)
			return
		}
		if !v.write(m) {
			m.cfg = map[string]any{}
			m.otherwise(v.kind)
			return
		}
		m.kind = v.kind
		m.auth(v.credential)
	}
}

// otherwise calls the service over HTTP, if it is known how.
func (m *making) otherwise(kind string) {
	if _, _, ok := callOf(m.n); ok {
		rest(m)
		return
	}
	m.missing(text.Of("the operation %q of %s has no counterpart", strings.Trim(m.n.text("resource")+" "+m.n.text("operation"), " "),
		cmp.Or(short(m.n.typ), kind)))
}

// put sets a configuration that is not empty.
func (m *making) put(name string, v importer.Value) {
	if found := locator(v); found.Exists() && found.Written() != "" {
		m.cfg[name] = m.value(found)
	}
}
