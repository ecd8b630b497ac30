import { type Command, InvalidArgumentError, Option } from 'commander'
import { EVERY_MERCHANT } from '../access/keys.ts'
import { type ListedPerson, listPeople } from '../access/people.ts'
import { PersonEmail, PersonName } from '../access/person-fields.ts'
import { ROLES, type Role } from '../access/roles.ts'
import { LINK_MINUTES } from '../access/sign-in.ts'
import { readConsoleConfig } from '../config/config.ts'
import {
  type AddPersonOptions,
  addNamedPerson,
  type InvitedPerson,
  linkPerson,
  removePerson,
} from './change-people.ts'
import { describeEnded } from './describe-ended.ts'
import { formatTable } from './format-table.ts'
import type { RunOnDatabase } from './with-database.ts'

type Print = (text: string) => void
type Json = { json?: true }
type LinkOutput = Json & { linkOnly?: true }
type Environment = Readonly<Record<string, string | undefined>>

/** What the commands need: where they print, the database, and the environment; this process's own if left out. */
type Streams = { print: Print; onDatabase: RunOnDatabase; env: Environment | undefined }

/** Adds `people add | link | list | remove`. */
export function addPeopleCommands(program: Command, streams: Streams): void {
  const people = program
    .command('people')
    .description('people who may use the console: add, link, list and remove')
  addAddCommand(people, streams)
  addLinkCommand(people, streams)
  addListCommand(people, streams)
  addRemoveCommand(people, streams)
}

const jsonOption = () => new Option('--json', 'as JSON, for programs')
const linkOnlyOption = () => new Option('--link-only', 'print the sign-in link alone')

function addAddCommand(people: Command, { print, onDatabase, env }: Streams): void {
  people
    .command('add')
    .description('add a person, and make a sign-in link')
    .argument('<name>', 'the name, as it stands in the audit log', readPersonName)
    .requiredOption('--role <role>', `one of ${ROLES.join(', ')}; repeat it for several`, addRole)
    .option('--merchant <code>', 'an account to see; all of them if left out', addMerchant)
    .option('--email <address>', 'an e-mail address, which also names the person', readEmail)
    .addOption(linkOnlyOption())
    .addOption(jsonOption())
    .action(async (name: string, options: Omit<AddPersonOptions, 'merchant'> & AddOptions) => {
      const { baseUrl } = readConsoleConfig(env)
      const { merchant = [EVERY_MERCHANT] } = options
      const added = await onDatabase((sql) =>
        addNamedPerson(sql, name, { ...options, merchant }, baseUrl),
      )
      print(presentLink(added, options))
    })
}

type AddOptions = LinkOutput & { merchant?: string[] }

function addLinkCommand(people: Command, { print, onDatabase, env }: Streams): void {
  people
    .command('link')
    .description('make another sign-in link')
    .argument('<person>', 'the name or the e-mail address')
    .addOption(linkOnlyOption())
    .addOption(jsonOption())
    .action(async (ref: string, options: LinkOutput) => {
      const { baseUrl } = readConsoleConfig(env)
      print(presentLink(await onDatabase((sql) => linkPerson(sql, ref, baseUrl)), options))
    })
}

function addListCommand(people: Command, { print, onDatabase }: Streams): void {
  people
    .command('list')
    .description('list people by name; those whose access has ended come last')
    .addOption(jsonOption())
    .action(async ({ json }: Json) => {
      const rows = await onDatabase((sql) => listPeople(sql))
      print(json ? formatJson(rows) : formatTable(HEADINGS, rows.map(formatRow)))
    })
}

function addRemoveCommand(people: Command, { print, onDatabase }: Streams): void {
  people
    .command('remove')
    .description("end a person's access and all their sessions now")
    .argument('<person>', 'the name or the e-mail address')
    .addOption(jsonOption())
    .action(async (ref: string, { json }: Json) => {
      const { id, name, endpoints } = await onDatabase((sql) => removePerson(sql, ref))
      const text = `the access of ${name} has ended\n${describeEnded(endpoints)}`
      print(json ? formatJson({ id, name, ended: true, endpoints }) : text)
    })
}

const HEADINGS = ['NAME', 'EMAIL', 'ROLES', 'ACCOUNTS', 'SESSIONS', 'LAST SEEN', 'ENDED']

function formatRow(person: ListedPerson): string[] {
  const { name, email, roles, merchants, sessions, lastUsedAt, endedAt } = person
  const times = [lastUsedAt, endedAt].map((time) => time?.slice(0, 16) ?? '-')
  return [name, email ?? '-', roles.join(','), merchants.join(','), String(sessions), ...times]
}

function presentLink(person: InvitedPerson, { linkOnly, json }: LinkOutput): string {
  if (json) return formatJson(person)
  if (linkOnly) return `${person.link}\n`
  return `${person.link}\n\nThis link signs ${person.name} in once, within ${LINK_MINUTES} minutes. Pass it on to no one else: only its hash is stored, so it cannot be shown again.\n`
}

function formatJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

function readPersonName(text: string): string {
  const name = PersonName.safeParse(text)
  if (name.success) return name.data
  throw new InvalidArgumentError('Write 1 to 140 printable characters, other than demo.')
}

function readEmail(text: string): string {
  const email = PersonEmail.safeParse(text.trim())
  if (email.success) return email.data
  throw new InvalidArgumentError('Write an e-mail address.')
}

function addRole(text: string, before: readonly Role[] = []): Role[] {
  const role = ROLES.find((one) => one === text)
  if (role) return [...before, role]
  throw new InvalidArgumentError(`Write one of ${ROLES.join(', ')}.`)
}

function addMerchant(code: string, before: readonly string[] = []): string[] {
  return [...before, code]
}
