declare module "virtual:documents" {
  const documents: ({ name: string } & import("./outline").Outline)[]
  export default documents
}
