import { parseArgs } from 'node:util'

/** What the command line asks for; `refuse` names the argument that is not known. */
export type Command =
  | { action: 'serve' | 'version' | 'help' }
  | { action: 'check'; json: boolean }
  | { action: 'refuse'; reason: string }

const ACTIONS = ['check', 'version', 'help'] as const

export const HELP = `Usage: node dist/main.js [--check [--json] | --version | --help]

Without an argument the service starts, with the settings of the environment (docs/settings.md).

  --check     check the settings, the database, its schema, the encryption key, the gateway's TLS
              and the clock, and serve nothing; exit code 0, or 1 when a check failed
  --json      with --check: print the result as JSON
  --version   print the version
  --help      print this help
`

/** Reads the arguments of the program. */
export function readArguments(args: readonly string[]): Command {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      check: { type: 'boolean' },
      json: { type: 'boolean' },
      version: { type: 'boolean' },
      help: { type: 'boolean' },
    },
    // Strict parsing names an unknown argument in a paragraph about positional arguments.
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const names = new Set<string>()
  for (const token of tokens) {
    if (token.kind === 'positional') return refuse(`unknown argument ${quote(token.value)}`)
    if (token.kind === 'option-terminator') return refuse('unknown argument "--"')
    const isKnown =
      token.rawName === '--json' || ACTIONS.some((name) => `--${name}` === token.rawName)
    if (!isKnown) return refuse(`unknown argument ${quote(token.rawName)}`)
    if (token.value !== undefined) return refuse(`${token.rawName} takes no value`)
    names.add(token.name)
  }
  const [action, other] = ACTIONS.filter((name) => names.has(name))
  if (action && other) return refuse(`--${action} cannot be combined with --${other}`)
  const json = names.has('json')
  if (json && action !== 'check') return refuse('--json needs --check')
  if (action === 'check') return { action, json }
  return { action: action ?? 'serve' }
}

function refuse(problem: string): Command {
  return { action: 'refuse', reason: `${problem}; see --help` }
}

/** Quotes an argument on one line, truncated. */
function quote(text: string): string {
  return JSON.stringify(text.slice(0, 100))
}
