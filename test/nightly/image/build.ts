import { copyFileSync, cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Builder, run } from './builder.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

export const BASE = 'localhost/base:drill'
export const IMAGE = 'localhost/ipn-processor:drill'

/** What the service does not need; the less there is, the less has to be copied. */
const DISPENSABLE = ['doc', 'info', 'locale', 'man', 'zoneinfo']

/**
 * Makes what `node:22-bookworm-slim` is from a package mirror instead of a registry: Debian's essential packages, unpacked by
 * debootstrap, and this process's Node with its npm. Nothing in it is configured, which costs a third of the time.
 */
export async function buildBase(builder: Builder): Promise<void> {
  const { name, folder } = await builder.open('scratch')
  const options = ['--foreign', '--variant=minbase']
  await run('debootstrap', [...options, 'bookworm', folder])
  for (const part of DISPENSABLE) rmSync(join(folder, 'usr/share', part), { recursive: true })
  rmSync(join(folder, 'var/cache/apt'), { recursive: true, force: true })
  rmSync(join(folder, 'debootstrap'), { recursive: true, force: true })
  // Left as a link to itself where debootstrap could not mount it.
  rmSync(join(folder, 'proc'), { recursive: true })
  mkdirSync(join(folder, 'proc'))
  // Made by the configuration that is left out.
  mkdirSync(join(folder, 'usr/local/bin'), { recursive: true })
  writeFileSync(join(folder, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n')
  writeFileSync(join(folder, 'etc/group'), 'root:x:0:\n')

  copyFileSync(process.execPath, join(folder, 'usr/bin/node'))
  const npm = join(await run('npm', ['root', '--global'], { cwd: ROOT }), 'npm')
  cpSync(npm, join(folder, 'usr/lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(folder, 'usr/bin/npm'))
  await passOnRegistry(folder)
  await builder.run(['commit', '--quiet', '--rm', name, BASE])
}

/** The build reaches the package registry as this machine does: by the same address, trusting the same authorities. */
async function passOnRegistry(folder: string): Promise<void> {
  const read = (name: string) => run('npm', ['config', 'get', name], { cwd: ROOT })
  const lines = [`registry=${await read('registry')}`]
  const authorities = [process.env.NODE_EXTRA_CA_CERTS, await read('cafile')]
  const bundle = authorities.find((file) => file && file !== 'null')
  if (bundle) {
    mkdirSync(join(folder, 'etc/ssl'), { recursive: true })
    copyFileSync(bundle, join(folder, 'etc/ssl/host.pem'))
    lines.push('cafile=/etc/ssl/host.pem')
  }
  const file = join(folder, 'usr/etc/npmrc')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${lines.join('\n')}\n`)
}

/** Builds the image from the Containerfile of the repository, on the base, as the release does. */
export async function buildImage(
  builder: Builder,
  labels: { version: string; revision: string },
): Promise<void> {
  const cache = await run('npm', ['config', 'get', 'cache'], { cwd: ROOT })
  mkdirSync(cache, { recursive: true })
  await builder.run(
    [
      ...['bud', '--isolation', 'chroot', '--pull-never', '--format', 'docker'],
      ...['--build-arg', `NODE_IMAGE=${BASE}`, '--build-arg', `VERSION=${labels.version}`],
      ...['--build-arg', `REVISION=${labels.revision}`, '--build-arg', 'SOURCE=drill'],
      // What `npm ci` has downloaded for this checkout is not downloaded again.
      ...['--volume', `${cache}:/root/.npm`, '--tag', IMAGE, '--file', 'Containerfile', '.'],
    ],
    ROOT,
  )
}
