import { execFile, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'

/** The output of a build that failed is the only trace of why. */
const OUTPUT_BYTES = 2 ** 26

const TOOLS = ['buildah', 'debootstrap', 'docker-compose', 'unshare', 'setpriv', 'chroot']
const INSTALL = 'run ops/install-image-tools.sh as root (Debian or Ubuntu, with a package mirror)'

/**
 * Checks that the drill can be played at all: it is never skipped.
 * @throws Error that says what is missing and how it is installed
 */
export function requireTools(): void {
  if (process.getuid?.() !== 0) {
    throw new Error(`the image is built and run as root only; ${INSTALL}, then the drill`)
  }
  const missing = TOOLS.filter((tool) => spawnSync('which', [tool]).status !== 0)
  if (missing.length > 0) throw new Error(`${missing.join(', ')} not found: ${INSTALL}`)
}

/** Runs a program and returns what it printed; a failure has all its output. */
export async function run(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string | undefined> } = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, {
    ...options,
    maxBuffer: OUTPUT_BYTES,
  }).catch((error: Error & { stdout?: string; stderr?: string }) => {
    throw new Error(`${error.message}\n${error.stdout ?? ''}\n${error.stderr ?? ''}`)
  })
  return stdout.trim()
}

/** What buildah knows of an image, as far as the drill compares it. */
const Inspected = z.object({
  Docker: z.object({
    config: z.object({
      User: z.string(),
      Env: z.array(z.string()),
      Entrypoint: z.array(z.string()),
      Cmd: z.array(z.string()).nullish(),
      WorkingDir: z.string(),
      StopSignal: z.string(),
      Labels: z.record(z.string(), z.string()),
      Healthcheck: z.object({ Test: z.array(z.string()), Timeout: z.number() }),
    }),
  }),
})
export type ImageConfig = z.infer<typeof Inspected>['Docker']['config']

/** buildah with a storage of its own, which is removed with its folder. */
export type Builder = {
  run(args: readonly string[], cwd?: string): Promise<string>
  /** Opens a new container of an image, or an empty one with `scratch`; returns its name and its file system's folder. */
  open(image: string): Promise<{ name: string; folder: string }>
  readConfig(image: string): Promise<ImageConfig>
  /** Unmounts everything; the folder can be removed after that. */
  close(): Promise<void>
}

/** @param folder where everything is stored */
export async function createBuilder(folder: string): Promise<Builder> {
  // `overlay` copies no base; where the kernel or the file system does not have it, `vfs` works everywhere.
  const overlay = makeBuilder(folder, 'overlay')
  const works = await overlay.open('scratch').then(
    () => true,
    () => false,
  )
  if (works) return overlay
  return makeBuilder(folder, 'vfs')
}

function makeBuilder(folder: string, driver: 'overlay' | 'vfs'): Builder {
  const storage = join(folder, driver)
  mkdirSync(storage, { recursive: true })
  const common = [
    ...['--root', join(storage, 'root'), '--runroot', join(storage, 'run')],
    ...['--storage-driver', driver],
  ]
  const buildah = (args: readonly string[], cwd?: string) =>
    run('buildah', [...common, ...args], {
      ...(cwd === undefined ? {} : { cwd }),
      // Layers pass through TMPDIR on their way into the storage.
      env: { ...process.env, TMPDIR: folder },
    })
  return {
    run: buildah,
    async open(image) {
      const name = await buildah(['from', '--pull-never', image])
      return { name, folder: await buildah(['mount', name]) }
    },
    async readConfig(image) {
      return Inspected.parse(JSON.parse(await buildah(['inspect', '--type', 'image', image])))
        .Docker.config
    },
    async close() {
      await buildah(['rm', '--all'])
      await buildah(['rmi', '--all', '--force'])
    },
  }
}
