/**
 * Starts Swagger UI. Without `validatorUrl: null` it would send the document to its vendor's validator.
 *
 * A plugin keeps an opened operation short: the answer to an ordinary request comes first, a problem takes a line that
 * leads to its row of the table below, and headers that every response has are left to the introduction.
 */
export const START_SCRIPT = `const EVERYWHERE = ['X-Request-Id', 'RateLimit-Policy', 'RateLimit']
const PROBLEM = ['content', 'application/problem+json', 'examples']

function rank(code) {
  if (code === '202') return 0
  return code.startsWith('2') ? 1 : 2
}

const compact = () => ({
  wrapComponents: {
    responses: (Responses, { React }) => (props) =>
      React.createElement(Responses, {
        ...props,
        responses: props.responses.sortBy((_, code) => rank(code)),
      }),
    response: (Response, { React: { createElement } }) => (props) => {
      const { code, response } = props
      if (!/^[45]/.test(code)) {
        const headers = response.get('headers')?.filter((_, name) => !EVERYWHERE.includes(name))
        return createElement(Response, {
          ...props,
          response: headers?.size ? response.set('headers', headers) : response.delete('headers'),
        })
      }
      const names = [...(response.getIn(PROBLEM)?.keys() ?? [])]
      const links = names.map((name) =>
        createElement('a', { key: name, href: '#problem-' + name }, name),
      )
      const details = links.length > 0 ? links : response.get('description')
      return createElement(
        'tr',
        { className: 'response refusal', 'data-code': code },
        createElement('td', { className: 'response-col_status' }, code),
        createElement('td', { className: 'response-col_description' }, details),
      )
    },
  },
})

SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  validatorUrl: null,
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
  plugins: [compact],
})
`
