/** nonce is what the server has put into the page for styles that are added by script; without it the browser refuses them. */
export const nonce = () => document.querySelector<HTMLMetaElement>('meta[name="csp-nonce"]')?.content ?? ""
