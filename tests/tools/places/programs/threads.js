// work.js in two workers and here.
const { Worker } = require('worker_threads')
for (let i = 0; i < 2; i++) new Worker(__dirname + '/work.js', { argv: [process.argv[2]] })
require('./work.js')
