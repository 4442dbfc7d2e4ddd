package google

import (
	"context"
	"encoding/json"

	"tandem/builtin/action"
	"tandem/builtin/fileref"
	"tandem/builtin/httpcall"
	"tandem/files"
	"tandem/node"
	"tandem/outbound"
	"tandem/workflow"
)

type driveConfig struct {
	action.Fields
	action.Paging
	FileID      string          `json:"file_id" with:"action_type=get_file|download_file|update_file|copy_file|move_file|delete_file|share_file" doc:"The id of the file or folder, or its address." zh:"文件编号：文件或文件夹的编号或地址。"`
	Name        string          `json:"name" with:"action_type=upload_file|create_folder|copy_file|update_file" doc:"What the file or folder is called. Of an upload empty: the name of the file." zh:"名称：文件或文件夹的名称；上传时留空则取文件名。"`
	FolderID    string          `json:"folder_id" with:"action_type=upload_file|create_folder|copy_file|move_file|list_files" doc:"The folder it is in, by its id or address. Empty: that of the account; of a list any." zh:"文件夹：所在文件夹的编号或地址；留空则为账号的根目录，列表则不限。"`
	File        json.RawMessage `json:"file" takes:"file" with:"action_type=upload_file|update_file" doc:"The file that is stored." zh:"文件：要存储的文件。"`
	Content     json.RawMessage `json:"content" with:"action_type=upload_file|update_file" doc:"What is stored in the place of a file: a text, or anything else as JSON." zh:"内容：代替文件存储的文本，其他值以 JSON 存储。"`
	ContentType string          `json:"content_type" with:"action_type=upload_file|update_file" doc:"The media type. Empty: that of the file." zh:"媒体类型：留空则取文件的类型。"`
	MaxBytes    int64           `json:"max_bytes" range:"1..1073741824" with:"action_type=upload_file|update_file|download_file" doc:"How large the file may be, in bytes." zh:"大小上限：文件的最大字节数。"`
	ExportType  string          `json:"export_type" with:"action_type=download_file" doc:"The media type that a document of Google is read as. Empty: a workbook of Excel for spreadsheets, else PDF." zh:"导出类型：Google 文档导出的媒体类型；留空则表格为 Excel，其他为 PDF。"`
	Search      string          `json:"search" with:"action_type=list_files" doc:"A query as Drive has it, name contains 'invoice' for instance." zh:"搜索：Drive 的查询语句，例如 name contains 'invoice'。"`
	Email       string          `json:"email" with:"action_type=share_file" doc:"Whom the file is shared with." zh:"邮箱：共享对象的邮箱。"`
	Role        string          `json:"role" enum:"reader|commenter|writer" with:"action_type=share_file" doc:"What they may do." zh:"角色：共享对象的权限。"`
	Permanent   bool            `json:"permanent" with:"action_type=delete_file" doc:"Whether it is gone for good, and not in the trash." zh:"永久删除：是否彻底删除而不移入回收站。"`
	Method      string          `json:"method" with:"action_type=request" doc:"The method of the call." zh:"方法：请求方法。"`
	Path        string          `json:"path" with:"action_type=request" doc:"The path, /drive/v3/about for instance." zh:"路径：例如 /drive/v3/about。"`
	Query       node.Object     `json:"query" with:"action_type=request" doc:"The parameters of the call." zh:"查询参数：请求的参数。"`
	Body        json.RawMessage `json:"body" with:"action_type=request" doc:"What is sent, as JSON." zh:"正文：发送的 JSON。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *driveConfig) Defaults() {
	c.ActionType, c.Limit, c.MaxBytes, c.Role = "upload_file", action.DefaultLimit, 100<<20, "reader"
}

type driveResult struct {
	action.Result
	File     *fileref.Value  `json:"file" doc:"The file that was read; else null." zh:"文件：所读取的文件；否则为 null。"`
	Response json.RawMessage `json:"drive_response" doc:"The answer of Google; null for lists." zh:"Drive 响应：Google 的原始响应；列表为 null。"`
}

// driveAction acts on files of Google Drive.
func driveAction(client *outbound.Client, store *files.Store) node.Kind {
	steps := action.Steps[driveConfig, *driveActing, driveResult]{
		Begin: func(ctx context.Context, call *node.Call, cfg driveConfig) (*driveActing, error) {
			api, err := service("Google Drive", "https://www.googleapis.com", "").Open(ctx, client, call)
			return &driveActing{ctx: ctx, call: call, cfg: cfg, api: api, store: store}, err
		},
		End: func(out *driveResult, cfg driveConfig) {
			if out.Done(cfg.ActionType); out.Response == nil {
				out.Response = json.RawMessage("null")
			}
		},
	}
	const idempotent, once = workflow.Idempotent, workflow.Once
	finds := steps.Asks((*driveActing).find)
	return action.Define(node.About{
		Name: "EXTERNAL_ACTION.GOOGLE_DRIVE", Title: node.Says("Google Drive", "Google 云端硬盘"),
		Description: node.Says("Works on files of Google Drive: finds, reads, stores, moves and shares them.", "操作 Google 云端硬盘中的文件：查找、读取、存储、移动与共享。"),
		Effect:      once,
		Needs: node.Needs{Credential: []string{credentialType}, Also: []node.Text{node.Says(
			"The account must have been authorized for https://www.googleapis.com/auth/drive.", "账号须已授权 https://www.googleapis.com/auth/drive。")}},
		Keys: []node.Key{{Name: "result", Meaning: node.Says("What Google has answered.", "Google 的响应。")}},
		Examples: []node.Example{{
			Shows:   node.Says("Makes a folder for an order.", "为订单创建文件夹。"),
			Config:  `{"credential_id": "google_acme", "action_type": "create_folder", "name": "Order {{order}}"}`,
			Input:   `{"order": 7}`,
			Replies: []string{`{"id": "1dyUEebJaFnWa3Z4n0BFMVAXQ7mfUH11g", "name": "Order 7", "webViewLink": "https://drive.google.com/drive/folders/1dyUEebJaFnWa3Z4n0BFMVAXQ7mfUH11g"}`},
			Output: `{"result": {"success": true, "action": "create_folder", "resource_id": "1dyUEebJaFnWa3Z4n0BFMVAXQ7mfUH11g",
				"resource_url": "https://drive.google.com/drive/folders/1dyUEebJaFnWa3Z4n0BFMVAXQ7mfUH11g", "items": [], "next_cursor": "", "truncated": false, "rate_limit_info": null,
				"error_message": "", "file": null,
				"drive_response": {"id": "1dyUEebJaFnWa3Z4n0BFMVAXQ7mfUH11g", "name": "Order 7", "webViewLink": "https://drive.google.com/drive/folders/1dyUEebJaFnWa3Z4n0BFMVAXQ7mfUH11g"}}}`,
		}},
	}, []action.Operation[driveConfig, driveResult]{
		{Name: "upload_file", Effect: once, Needs: []string{"file|content"}, Do: steps.Does((*driveActing).upload), Inquire: finds},
		{Name: "create_folder", Effect: once, Needs: []string{"name"}, Do: steps.Does((*driveActing).createFolder), Inquire: finds},
		{Name: "copy_file", Effect: once, Needs: []string{"file_id"}, Do: steps.Does((*driveActing).copy), Inquire: finds},
		{Name: "update_file", Effect: idempotent, Needs: []string{"file_id", "name|file|content"}, Do: steps.Does((*driveActing).update)},
		{Name: "move_file", Effect: idempotent, Needs: []string{"file_id", "folder_id"}, Do: steps.Does((*driveActing).move)},
		{Name: "delete_file", Effect: idempotent, Needs: []string{"file_id"}, Do: steps.Does((*driveActing).delete)},
		{Name: "share_file", Effect: idempotent, Needs: []string{"file_id", "email"}, Do: steps.Does((*driveActing).share)},
		{Name: "list_files", Effect: idempotent, Lists: true, Do: steps.Does((*driveActing).list)},
		{Name: "get_file", Effect: idempotent, Needs: []string{"file_id"}, Do: steps.Does((*driveActing).get)},
		{Name: "download_file", Effect: idempotent, Needs: []string{"file_id"}, Do: steps.Does((*driveActing).download)},
		{
			Name: "request", EffectOf: func(c driveConfig) workflow.Effect { return httpcall.EffectOf(c.Method) }, Needs: []string{"method", "path"},
			Do: steps.Does((*driveActing).request),
		},
	})
}
