// srt as the Node library it is; the same requests and answers as worker.py.
//     node srt_worker.mjs MODULE SETTINGS WORKSPACE
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [module, settings, workspace] = process.argv.slice(2)
const { SandboxManager } = await import(module)
await SandboxManager.initialize(JSON.parse(readFileSync(settings, 'utf8')))

const quoted = argv => argv.map(word => `'${word.replaceAll("'", "'\\''")}'`).join(' ')

async function started(argv) {
  const line = await SandboxManager.wrapWithSandbox(quoted(argv))
  return spawn(line, { shell: true, cwd: workspace, stdio: ['ignore', 'pipe', 'pipe'] })
}

async function runOnce(argv) {
  const child = await started(argv)
  let output = ''
  child.stdout.on('data', data => { output += data })
  child.stderr.resume()
  const code = await new Promise(resolve => child.on('close', resolve))
  SandboxManager.cleanupAfterCommand()
  return { code: code ?? -1, output }
}

const now = () => performance.now() / 1000
const held = []

const answers = {
  async run({ argv }) {
    const start = now()
    const done = await runOnce(argv)
    const used = process.cpuUsage()
    // Node tells nothing of the children it reaped: no CPU time of theirs.
    return { seconds: now() - start, cpu: null, ...done, own_cpu: (used.user + used.system) / 1e6 }
  },
  async rate({ seconds, threads }) {
    const start = now()
    let count = 0
    const work = async () => {
      while (now() - start < seconds) {
        const { code } = await runOnce(['true'])
        if (code) throw new Error(`exit code ${code}`)
        count++
      }
    }
    await Promise.all(Array.from({ length: threads }, work))
    return { rate: count / (now() - start) }
  },
  async crowd({ count }) {
    let failed = 0, longest = 0, last = now()
    const ticking = setInterval(() => { longest = Math.max(longest, now() - last - 0.001); last = now() }, 1)
    const start = now()
    const one = async () => { if ((await runOnce(['true'])).code) failed++ }
    await Promise.all(Array.from({ length: count }, one))
    const total = now() - start
    clearInterval(ticking)
    return { total, stall: longest, failed }
  },
  async hold({ count }) {
    while (held.length < count) held.push(await started(['sleep', '30']))
    return { held: held.length }
  },
}

const say = answer => process.stdout.write(JSON.stringify(answer) + '\n')
say({ ready: true })
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line)
  try { say(await answers[request.do](request)) } catch (error) { say({ error: String(error) }) }
}
await SandboxManager.reset()
process.exit(0)
