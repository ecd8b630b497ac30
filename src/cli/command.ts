import { type Command, InvalidArgumentError } from 'commander'
import { closest } from 'fastest-levenshtein'
import { z } from 'zod'
import type { Context } from '../context.ts'
import type { Tx } from '../platform/postgres/types.ts'
import type { Log } from '../platform/telemetry/log.ts'

/** A command that cannot run as it was typed; printed as one line, with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A command that was typed correctly but cannot be carried out; printed as one line, with exit code 1. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
}

export type CliStreams = {
  /** How the program was called, for messages that name a command: `npm run -s cli --`. */
  name: string
  input: AsyncIterable<Uint8Array | string> & { isTTY?: boolean | undefined }
  /** The environment variables; this process's own if undefined. */
  env: Readonly<Record<string, string | undefined>> | undefined
  /** Writes data to standard output. A command that prints much awaits the result. */
  print: (text: string) => unknown
  /** Writes messages to standard error. */
  printError: (text: string) => void
  /** Standard error is a terminal that can redraw a line. */
  isTerminal?: boolean
}

export type Cli = CliStreams & {
  json: boolean
  /** Whether there is a person who can be asked. */
  canAsk: boolean
  /** Runs work on the service's database, whose schema is current. */
  onDatabase: <T>(work: (db: Context['db']) => Promise<T>) => Promise<T>
  /** Runs work in one transaction, which records the change as well. */
  change: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>
  /** Writes each entry of the audit log to standard error, in the format of the service's log. */
  log: Log
}

/** What a command found or did: `value` for programs, `text` for people. A finding makes the exit code 1. */
export type Output = { value?: unknown; text: string; isFinding?: boolean }

type Declared<Input extends z.ZodRawShape> = {
  /** With the name of its group: `keys create`. */
  name: string
  description: string
  /** The members of `input` that are arguments, in their order; the others are options. */
  args?: readonly (keyof Input & string)[]
  input: Input
  examples?: string
  /** @param typed the input as it was typed */
  run(cli: Cli, input: z.output<z.ZodObject<Input>>, typed: object): Promise<Output | undefined>
}

export type AddCommand = (
  program: Command,
  run: (
    canAsk: boolean,
    json: boolean,
    work: (cli: Cli) => Promise<Output | undefined>,
  ) => Promise<void>,
) => void

/** Declares a command. The schemas of `declared.input` check its arguments and options, and hold their help. */
export function command<Input extends z.ZodRawShape>(declared: Declared<Input>): AddCommand {
  const { name, description, args = [], input, examples } = declared
  return (program, run) => {
    const [own = '', group] = name.split(' ').toReversed()
    const parent = program.commands.find((one) => one.name() === group) ?? program
    const made = parent.command(own).description(description)
    for (const arg of args) {
      const { schema, isList, isRequired } = describeInput(input[arg])
      const form = isList ? `${arg}...` : arg
      made.argument(
        isRequired ? `<${form}>` : `[${form}]`,
        describeSchema(input[arg]),
        parse(schema, isList),
      )
    }
    for (const [option, given] of Object.entries(input)) {
      if (args.includes(option)) continue
      const { schema, isList, isRequired } = describeInput(given)
      const flag = `--${option.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
      const help = describeSchema(given, option)
      if (schema instanceof z.ZodBoolean) made.option(flag, help)
      else if (isRequired) made.requiredOption(`${flag} <value>`, help, parse(schema, isList))
      else made.option(`${flag} <value>`, help, parse(schema, isList))
    }
    made.option('--json', 'as JSON, for programs')
    if (examples) made.addHelpText('after', `\n${examples}`)
    made.action(async () => {
      const options = made.optsWithGlobals()
      const typed = Object.fromEntries(
        Object.keys(input).map((one) => {
          const at = args.indexOf(one)
          return [one, at === -1 ? options[one] : made.processedArgs[at]]
        }),
      )
      const read = z.object(input).parse(typed)
      await run(options.input, options.json === true, (cli) => declared.run(cli, read, typed))
    })
  }
}

/** Help for the filters of lists, which the API describes in its own terms. */
const DESCRIPTIONS = new Map([
  ['from', 'only from this time on, like 2026-11-21T09:00:00Z'],
  ['to', 'only before this time'],
  ['amount', 'only of this amount, compared by value'],
])

function describeSchema(schema: z.core.$ZodType | undefined, option = ''): string {
  const own = schema && z.globalRegistry.get(schema)?.description
  return DESCRIPTIONS.get(option) ?? own?.replace(/^Only/, 'only') ?? `only with this ${option}`
}

/** Finds the schema of a single typed value, and whether the value is required or may be repeated. */
function describeInput(schema: z.core.$ZodType | undefined) {
  const isRequired = schema !== undefined && !z.safeParse(schema, undefined).success
  let inner = schema
  while (isWrapped(inner)) inner = inner.unwrap()
  const isList = inner instanceof z.ZodArray
  return { schema: inner instanceof z.ZodArray ? inner.element : inner, isList, isRequired }
}

const isWrapped = (schema: unknown) =>
  schema instanceof z.ZodOptional ||
  schema instanceof z.ZodNullable ||
  schema instanceof z.ZodDefault

/** Makes a function that checks a typed value and returns it as it was typed, in a list if it may be repeated. */
function parse(schema: z.core.$ZodType | undefined, isList: boolean) {
  return (text: string, before: unknown) => {
    const [issue] = schema ? (z.safeParse(schema, text).error?.issues ?? []) : []
    if (issue?.code === 'invalid_value') {
      const values = issue.values.map(String)
      throw new InvalidArgumentError(
        `Did you mean ${closest(text, values)}? It is one of ${values.join(', ')}.`,
      )
    }
    if (issue) throw new InvalidArgumentError(`It ${issue.message}.`)
    return isList ? [...(Array.isArray(before) ? before : []), text] : text
  }
}
